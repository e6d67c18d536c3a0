// Package attach is what `sbr run --singleton` and an agent say to each other, in lines of JSON both ways
// over one HTTP request; and the side of `sbr run`.
//
// The machine of the singleton runs in the agent, as the function of a singleton.Manager: an Agent here gives
// the program its turns as the manager decides.
//
// The program's side attaches, pings, reports when its program has ended, and detaches. The agent's side
// answers, and orders when the program starts and stops:
//
//	POST /run                                  Content-Type: application/x-ndjson
//	> {"attach":{"singleton":"backup","client":"k3…","pid":4711,"stop-timeout":"10s","version":"v1.2.3"}}
//	< {"attached":{"system":"payments","member":"n1","incarnation":"n1#…","patience":"15s"}}
//	> {"ping":1}                               each second
//	< {"pong":{"n":1}}
//	< {"start":{"run":1,"token":"7","state":"Li4u","from":"n2","valid-for":"25s","notice":"8s"}}
//	> {"ping":2}
//	< {"pong":{"n":2,"run":1,"valid-for":"25s"}}
//	< {"stop":{"run":1,"cause":"hand-over","why":"n2 takes over"}}
//	> {"ended":{"run":1,"again":true,"state":"Li4u"}}
//	> {"detach":true}
//	< {"bye":{"why":"detached"}}
//
// # Guarantees
//
//   - What is read has one meaning: unknown keys, several messages in one line, values out of bounds and
//     lines of more than MaxLine bytes are errors.
//
// # Non-guarantees
//
//   - Two versions of this package need not understand each other. `sbr run` and its agent are of one
//     version.
package attach
