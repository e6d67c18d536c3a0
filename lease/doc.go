// Package lease is a distributed lock with a record: one holder at a time, a fencing token, and the verdict
// that the holder wrote when it took the lease.
//
// It is cut in two. A Store is one record with a conditional write: small, many backends (memory, kubernetes,
// yours). A Lease is the algorithm over any Store, for one owner: acquiring, heartbeats, expiry, release, and
// the truth about what is not known.
//
//	l, err := lease.New(store, "node-1@1700000000", lease.DefaultSettings(), lease.Options{})
//	defer l.Close()
//	grant, err := l.Acquire(ctx, lease.Proposal{})
//	switch {
//	case err == nil:                     // held until grant.Done() is closed; grant.Token() fences
//	case errors.Is(err, lease.ErrHeld):  // for certain not: the HeldError says who holds it
//	default:                             // unknown; ask again
//	}
//
// Acquire asks once, AcquireWait waits until the lease is free, ForceRelease takes it away from any holder.
// Package lock builds plain locks on it, for callers that want no more, and runs functions while one is held.
//
// For a resolver of partitions, Acquire takes a verdict that builds upon the newest Record it has read; the
// HeldError then carries the verdict of the faster party. See Proposal.
//
// # Guarantees
//
//   - One holder: at no instant does Check answer true for two owners, under any loss, delay, reordering or
//     late commit of requests, any pause of any party, any wall clock. (Exceptions are asked for:
//     Proposal.Override, ForceRelease, and an operator who edits or deletes the record; then the former
//     holder learns with its next heartbeat, or by a running Watch at once. A Store that is a Limiter is
//     shared with programs whose own rule counts, wall clocks and all.)
//   - After a take-over (Proposal.TakeOver) the verdict counts at once. Check is false until the former
//     holder's time is over, and the lease is not freed before.
//   - "Don't know" is never "granted": a Grant means that the record was committed with this attempt's nonce,
//     and was still in force when Acquire returned. A HeldError means that this attempt holds nothing and
//     never will: it was not written, or was already replaced by the record that comes with the answer.
//   - What ended in any other error is never granted behind the caller's back: a late commit is undone, or
//     adopted by a later Acquire.
//   - Tokens grow: each grant and each verdict has a larger one than all before. If the store forgets
//     (deleted, restored from a backup): larger than all tokens that the acquiring party has ever seen, and
//     the newest verdict that it has seen stays in force.
//   - Verdicts survive releases, heartbeats and plain locks.
//   - Check and Token never block. They compare a monotonic deadline, and so are right after a pause of any
//     length too.
//   - A Grant's Done is closed once, with the reason, after Check has turned false and before a release is
//     sent.
//   - Acquire, Release, ForceRelease and Read answer within their context and Settings.OperationTimeout. All
//     methods are safe for concurrent use; plain Acquires on one Lease share one attempt, other calls queue
//     up, and none goes unanswered. An answer is never older than the question.
//   - Without a held lease, a running Watch or an attempt in doubt, a Lease sends nothing and has no
//     goroutine.
//   - An acquire is one write if the record's state is known (from the last operation or a Watch), else one
//     read and one write; a release and a heartbeat are one write.
//
// # Non-guarantees
//
//   - No lock stops what is already on its way. Between two calls of Check a process can be paused for longer
//     than the lease lasts; only a resource that checks the fencing token is safe from that.
//   - The lease is not fair: among many waiting parties any may be next.
//   - Re-entrant means the same owner, not the same goroutine: two goroutines that Acquire from one Lease
//     both hold it, and one Release frees it for both. Proposal.Exclusive lets one in at a time.
//   - A holder that crashed blocks the others for Settings.HeartbeatTimeout from the moment each of them
//     first looked: no party believes the times in the record.
//
// # Assumptions
//
//   - Clock rates: the clocks of any two parties run at rates that differ by less than one eighth (12.5 %).
//     Offsets of wall clocks do not matter, however large; neither do jumps.
//   - A party's monotonic clock does not stand still while others' run on. A suspended machine (not process)
//     can break that; the fencing token covers it.
//   - All parties of one lease use the same HeartbeatTimeout. Each caps what the record says by its own
//     setting, so that a poisoned record locks no party out; with a shorter setting than the holder's it
//     would take over too early.
//   - An owner names one life of one process. Two lives under one name displace each other: safe, but a
//     quarrel.
//   - The Store keeps its contract: conditional writes are atomic, reads see the latest write, versions do
//     not repeat. (leasetest.Run checks a backend.)
package lease
