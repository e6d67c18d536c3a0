// Package probe is the prober of members beside a Serf agent: [Server] is a downing.Prober. Serf itself
// cannot be asked from outside to probe a member directly, so the resolvers probe each other over UDP.
//
// Requests and replies use one socket, from the probe port of one host to the probe port of the other. A
// firewall then needs one rule, "UDP to this port", in both directions; a firewall that tracks connections
// lets replies through as long as requests get through, and an address translator keeps one mapping for each
// pair. A second socket for requests would have answers arrive at ports that no rule names.
//
// # Datagrams
//
//	request  "sbr" version=1 kind=1 nonce[16] length id[length]
//	reply    "sbr" version=1 kind=2 nonce[16]
//
// # Guarantees
//
//   - A request is answered only if it names the announced incarnation: neither a predecessor nor another
//     node at that address answers.
//   - Ping is true only if a reply came in time with the nonce of this call, 128 random bits.
//   - A reply is shorter than its request, and a datagram that asks for nothing valid gets none. Handling one
//     allocates nothing.
//   - Errors of reading or writing do not end the server; Close does, with all its goroutines.
//
// # Non-guarantees
//
//   - Nothing is encrypted. An attacker that reads the traffic of a host can answer in its place, and sees
//     the names of members.
//   - Requests are not authenticated: a sender that knows an incarnation can find out whether it runs.
//
// # Assumptions
//
//   - A member's probe port can be reached at the address of its Serf node, on the same port number that it
//     listens on.
package probe
