// Package handover decides, on one member, whether that member runs one slot: a singleton, or whatever else
// may run in one place only. It is a pure state machine, like package sbr: time is an argument, what it wants
// done is returned as values.
//
//	for effects := m.Step(now, event) { carry them out; report back with further events }
//	when NextDeadline() comes: m.Tick(now)
//
// The slot belongs to the oldest candidate. Before a member runs it, it asks every member that it knows. Each
// answers that nothing speaks against it (Clear), that it runs the slot itself (Running), or that it is the
// one whose turn it is (Refuse). Who runs it is then asked to hand over: it stops, waits until the run has
// really ended, gives its lease back and answers with its state; only then the next run starts. A member that
// was downed, or is gone without a word, is not asked any more: the removal margin is waited for in its
// place.
//
// Whoever has asked a run to end is bound: it runs the slot next, even if an older candidate has come or it
// resigns meanwhile, and hands it over at once. So whatever members come and go, nobody has to ask everybody
// while nothing runs.
//
// # Guarantees
//
//   - Of two members that know each other, the later one to ask sees what the earlier one does: as long as
//     they can talk, they never both run.
//   - A member that cannot be asked delays a run until a verdict has removed it and Config.Margin has passed
//     since, or for ever.
//   - With Config.UseLease nothing runs without the lease. A run whose lease is lost is stopped, and the
//     lease is asked for again only once that run has ended.
//   - Without a lease a run is stopped when the member has not been sure of its place for Config.Trust; Until
//     tells that moment in advance, so that a process that stood still finds out at once.
//   - Tokens grow: with a lease they are the lease's. Without one, a run that follows a verdict has a larger
//     token than every run before that verdict, and a run that was handed over than its predecessor.
//   - A member that is down stops before it does anything else, and never starts again.
//   - Where nothing is lost and nobody fails, a planned change costs no pause of the Config: between two runs
//     is one answer, and with a lease the two requests to give it back and to get it.
//
// # Non-guarantees
//
//   - Where several members stop, start again or leave within each other's changes, one question and its
//     answers may be on the way while nothing runs, as long as one candidate stays. Where none does, nothing
//     runs until there is one and everybody knows.
//   - After a run that ended by itself for good, and wherever nothing runs, one more question and its answers
//     are on the way to the next run. An older candidate that is not armed yet is waited for.
//   - Stop asks a run to end. How long it takes to, is the run's business; nothing else starts meanwhile, if
//     this member can still say so.
//   - Without a lease, two clusters that never heard of each other each run the slot. When they meet, the
//     younger run stops.
//   - Without a lease, a strategy that needs none leaves no verdict behind: tokens then grow by hearsay. When
//     no member is left that remembers one, they grow by the wall clock (Config.Floor).
//   - Without a lease, a live member that does not answer stops everybody else from starting. With one, the
//     lease decides after Config.NumberOfRetries.
//
// # Assumptions
//
//   - All members run the same Config, and their clocks' rates differ by less than one eighth.
//   - Config.Margin is longer than twice the time in which a member of a losing side notices that it is cut
//     off (package timing computes it), or a lease is used.
package handover
