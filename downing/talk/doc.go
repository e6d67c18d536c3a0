// Package talk is the wire format in which what runs on top of a downing provider asks other members, and is answered.
//
// Questions travel as Serf queries under a name of their own, answers as the answers to those. Nothing here concerns partitions: that is package
// gossip. Members are named by a digest of their incarnation, because two long names, a topic and a payload do not fit into one query.
//
// # Guarantees
//
//   - Whatever Encode writes, Decode reads back unchanged. Decode accepts nothing else, and never panics.
//   - A message with MaxPayload bytes and the longest topic fits into Serf's default limits of 1024 bytes for queries, answers and relayed answers, as
//     long as node names have at most 100 bytes.
//
// # Non-guarantees
//
//   - Messages are not authenticated beyond Serf's own encryption. Whoever holds the gossip key can write them.
//   - A Key is no secret, and no proof: who has the key of a member can look it up in the member list.
//
// # Assumptions
//
//   - No two incarnations of one cluster have the same Key: 64 bits of a SHA-256.
package talk
