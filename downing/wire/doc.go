// Package wire is what members say to each other: the resolvers in Messages, what runs on top of them in
// Frames.
//
// Both travel as Serf queries, and as answers to those, each kind under a name of its own. They are never
// user events: those are replayed across a heal and to newcomers. A message that downs members names its
// targets by incarnation, and a member acts only on its own name. A frame names members by a digest of their
// incarnation, because two long names, a topic and a payload do not fit into one query.
//
// # Guarantees
//
//   - Encode never yields a message over MaxMessage bytes: lists are cut into several messages, each of
//     which makes sense alone.
//   - Whatever Frame.Encode writes, DecodeFrame reads back unchanged. A frame with MaxPayload bytes and the
//     longest topic fits into Serf's default limits of 1024 bytes for queries, answers and relayed answers,
//     if node names have at most 100 bytes.
//   - What was not written by Encode is refused by Decode, with ErrInvalid: unknown kinds, lists without a
//     bound, trailing data. Neither panics. The same is true of frames.
//
// # Non-guarantees
//
//   - Nothing is authenticated beyond Serf's own encryption. A process with the gossip key can write any
//     message.
//   - A Key is no secret, and no proof: the member list shows which member has a key.
//
// # Assumptions
//
//   - Serf's query size limit is at least 1024 bytes (its default).
//   - No two incarnations of one cluster have the same Key: 64 bits of a SHA-256.
package wire
