// Package handover decides, on one member, whether that member runs one slot: a singleton, or anything else
// that may run in one place only. It is a pure state machine, like package sbr: time is an argument, effects
// are returned as values.
//
//	for effects := m.Step(now, event) { carry them out; report back with further events }
//	when NextDeadline() comes: m.Step(now, slot.Tick{})
//
// The slot belongs to the oldest candidate. Before a member runs the slot, it asks every member that it
// knows. Each answers that it consents (Clear), that it runs the slot itself (Running), or that the slot
// belongs to itself (Refuse). A member that runs the slot is then asked to hand over: it stops, waits until
// the run has really ended, releases its lease and answers with its state; only then the next run starts. A
// member that was downed, or is gone without a word, is not asked any more: the asker waits for its removal
// margin instead.
//
// A member that has asked a run to end is bound: it runs the slot next, even if an older candidate has come
// or the member resigns meanwhile, and hands the slot over at once. So whatever members come and go, no
// member has to ask all others while nothing runs.
//
// # Guarantees
//
//   - Of two members that know each other, the one that asks later learns what the other does: as long as
//     they reach each other, they never both run.
//   - A member that cannot be asked delays a run until a verdict has removed it and Config.Margin has passed
//     since, or for ever.
//   - With Config.UseLease nothing runs without the lease. A run whose lease is lost is stopped, and the
//     lease is requested again only once that run has ended.
//   - Without a lease a run is stopped when membership was not confirmed for Config.Trust; Until returns that
//     moment in advance, so that a process notices it at once after a pause.
//   - Tokens grow: with a lease they are the lease's. Without one, a run after a verdict has a larger token
//     than every run before that verdict, and a run after a hand-over a larger one than its predecessor.
//   - A member that is down stops before it does anything else, and never starts again.
//   - Where no message is lost and no member fails, a planned change waits for no time of the Config: between
//     two runs is one answer and, with a lease, the two requests to release and to acquire it.
//
// # Non-guarantees
//
//   - Where several members stop, start again or leave within each other's changes, one request and its
//     answers may be on the way while nothing runs, as long as one candidate stays. Without a candidate
//     nothing runs until there is one and all members know it.
//   - After a run that ended by itself for good, after one during which members came that have not consented
//     yet, and wherever nothing runs, the next run takes one more request and its answers. An older candidate
//     that is not armed yet is waited for.
//   - Stop asks a run to end, which may take any time. Nothing else starts meanwhile, as long as this member
//     can answer.
//   - Without a lease, two clusters that do not know each other both run the slot. When they meet, the
//     younger run stops.
//   - Without a lease, a strategy that needs no lease leaves no verdict: members then learn tokens from each
//     other. When no member that knows a token is left, tokens grow by the wall clock (Config.Floor).
//   - Without a lease, a live member that does not answer keeps all others from starting. With one, the lease
//     decides after Config.NumberOfRetries.
//
// # Assumptions
//
//   - All members run the same Config, and their clocks' rates differ by less than one eighth.
//   - Config.Margin is longer than twice the time in which a member of a downed side notices the partition
//     (package timing computes it), or a lease is used.
package handover
