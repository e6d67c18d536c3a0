// Package gossip is the wire format of what members tell each other about a partition.
//
// Messages travel as Serf queries under one name. They are never user events: those are replayed across a heal and to
// newcomers. Every message that downs somebody names its targets by incarnation, and a member acts only on its own name.
//
// # Guarantees
//
//   - Encode never yields a message over Limit bytes: lists are cut into several messages, each of which makes sense alone.
//   - Decode accepts only what Encode can have written: known kinds, bounded lists, no trailing data. It never panics.
//
// # Non-guarantees
//
//   - Messages are not authenticated beyond Serf's own encryption. Whoever holds the gossip key can write them.
//
// # Assumptions
//
//   - Serf's query size limit is at least 1024 bytes (its default).
package gossip
