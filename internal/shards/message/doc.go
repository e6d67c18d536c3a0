// Package message has what coordinator and hosts of a type of shards say to each other, and how it is
// written: strictly, in at most MaxSize bytes.
//
// A Coordinator's run has a Term, the fencing token of its singleton. It numbers its questions and orders:
// Number(term, n), n from 1, never twice under one term. So numbers grow with time over all coordinators, and
// tell which of two orders is the later one.
//
// # Guarantees
//
//   - Decode accepts exactly what Append writes. It never panics, whatever it is given, and what it returns
//     is at most as large as the limits say.
//   - Fit says how many items of a list one message can carry, so that what is written fits.
//
// # Non-guarantees
//
//   - Nothing is encrypted or signed here: that is the transport's business.
//
// # Assumptions
//
//   - Two members' Keys differ. They are 64 bits of a hash: among 500 members, one cluster in 10¹⁴ is
//     unlucky. A coordinator gives nothing to two members with the same key.
package message
