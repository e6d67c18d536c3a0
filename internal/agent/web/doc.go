// Package web is what the agent serves over HTTP: the status page and its feed, the status as JSON, the
// health and the metrics.
//
//	s, err := web.New(web.Options{Listen: "127.0.0.1:7380", Source: agent, Metrics: metrics})
//	err = s.Serve(ctx) // until ctx ends
//
//	GET /                a page for people: what is going on, live
//	GET /status          the member's view as JSON, downing.Status
//	GET /events          the same as server-sent events, whenever something changes
//	GET /metrics         what Options.Metrics says
//	GET /healthz/live    200, or 503 and one line why
//	GET /healthz/ready   200, or 503 and one line why
//	POST /down           downs a member, as Options.Down says (DownRequest, DownAnswer)
//	POST /run            attaches a program, as Options.Programs says
//
// # Guarantees
//
//   - Nothing can be changed over HTTP but at /run and /down, and not by a web page; every other path answers
//     GET and HEAD, everything else is refused with 405. /down refuses all requests if the address is no
//     loopback and there is no token.
//   - With a token, requests without it get only /healthz/live and /healthz/ready. A token file that cannot
//     be read admits no request.
//   - The page asks for nothing but itself and /events; its content security policy forbids the rest. Names
//     come from other members and are text on the page, never markup or script.
//   - Beside a loopback address only requests to a loopback host are answered, so that no web site can read
//     the page through a name of its own (DNS rebinding).
//   - What a client can hold is bounded: connections, feeds, the time for each step. A slow client misses
//     states; it delays no other client.
//   - Without clients only the listener runs.
//
// # Non-guarantees
//
//   - Without TLS the token travels in clear text. New logs a warning if the token leaves the machine.
//   - The page shows what this member knows. Other members may see the cluster differently; that is what the
//     page is for.
//   - The history begins with the process and holds the last few hundred entries.
//
// # Assumptions
//
//   - The methods of Source return within milliseconds and do not block on the network.
//   - A browser of 2024 or later (the page uses the CSS function light-dark).
package web
