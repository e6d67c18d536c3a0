// Package agentrpc reaches a stock `serf agent` over its RPC port: [Agent] is a downing.Agent.
//
//	agent, err := agentrpc.New(agentrpc.Options{Addr: "127.0.0.1:7373", AuthKey: key})
//	err = provider.Beside(ctx, agent, prober)
//
// It keeps two connections, because an agent handles the requests of one connection in order: one reads the
// members, and nothing that takes time may delay that; the other carries queries and events. Each command
// that can take long (tags, join, removal, leave) gets a connection of its own. The member list is read at
// intervals and is the truth; events are dropped, coalesced and repeated on their way, and are only a reason
// to read it sooner.
//
// The client library cannot be interrupted, waits for ever for an agent that hangs, and may panic when it is
// closed while it delivers. So it never talks to the agent itself: it talks to a relay in this process, on
// loopback, which can cut the connection at any time; the library then closes itself, on its own goroutine.
//
// # Guarantees
//
//   - Members never blocks, and is current only while the agent answers: an agent that hangs is noticed
//     within Options.Interval + Options.Timeout.
//   - An agent that restarts has forgotten the others. Those that it listed before, as anything but left, and
//     does not list any more are reported as failed until it lists them again or Remove is called for them: a
//     lonely agent never looks like a whole cluster. To join one of them, and to set the tags again that it
//     has forgotten as well, is the provider's part.
//   - A connection that is lost is made again, with growing pauses up to one second; then members are read
//     anew, and AgentEvents.Changed is called.
//   - Remove removes only a member that is failed when the agent is asked right before, and never erases one.
//   - Nothing that is received grows a queue: what does not fit is dropped, and counted.
//   - Close ends every goroutine.
//
// # Non-guarantees
//
//   - A member that leaves, or is erased by an operator, during the moment in which the agent restarts is
//     reported as failed until it is removed.
//   - Serf's RPC does not name the sender of a query, and does not encrypt. Keep the port on loopback.
//
// # Assumptions
//
//   - The agent stays the same: the same node name at the same address. Another agent is refused, and counts
//     as silent.
//   - The agent itself is not hostile: what it sends is bounded for each request, but it speaks for this
//     node. Agents from 0.9.4 on.
package agentrpc
