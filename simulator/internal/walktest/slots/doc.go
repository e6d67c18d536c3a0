// Package slots tries everything that can happen to one slot (package handover) on a small cluster: the real
// machines in every member, and around them an abstract cluster of which everything is allowed that the real
// one might do.
//
//	r := slots.Walk(ctx, options) // walktest.Default, with what may happen; or one of Normal or Thorough
//	for _, v := range r.Broken { fmt.Println(v) }
//
// The machines ask, answer, start and stop. Around them members join and are armed, a cut divides them, the
// verdict goes to either side or the cut heals, members crash, are paused, resign, leave; messages come in
// any order, late, twice or never; runs take long to end; the lease runs out. walktest.Options says how much
// of that.
//
// # Promises
//
//   - A: never are two runs active at once. A run is active from its start until it is asked to stop or has
//     ended, while its process is not paused and its own check holds: the lease is its own or, without one,
//     its time is not over. And no run starts before the run that was handed over to it has ended or, without
//     a lease, that of any member that no verdict has removed.
//   - B: tokens grow. With a lease each run has a larger token than every run before, but for a run that
//     starts again where it ended. Without a lease a run that was handed over has a larger token than its
//     predecessor, and a run that follows a verdict a larger one than all before.
//   - C: from every state that was reached, once faults stop (the network is whole or one side has won,
//     messages flow, runs end), exactly one run is active again within Options.Bound.
//   - D: a deadline that has come is over after a tick.
//
// # Guarantees
//
//   - Machines are compared by handover.Machine.AppendState.
//   - A manager that is opened again begins with a Floor beyond all tokens so far: for the wall clock of the
//     real one.
//
// # Non-guarantees
//
//   - The word that a run has started, which changes later tokens only, comes at once where nothing may be
//     late.
//
// # Assumptions
//
//   - Those of package handover. Every member notices a change of whom it reaches within half the margin, and
//     is not armed before all others know it.
package slots
