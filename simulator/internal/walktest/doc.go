// Package walktest is what models of something that runs on the members of a small cluster share: those of
// singletons (slots) and of shards (shards). It is harness: nothing but their tests imports it.
//
//	go test ./simulator/internal/walktest/slots -v -only 'a crash'     those with such names
//	go test ./simulator/internal/walktest/slots -v -thorough           the long ones, too
//
// The models run on an abstract cluster: members (Cluster) and messages under way (Packets). What
// they do with runs, and with leases, is a Walker; what is their own is a Runner. The cluster is what a
// resolver shows to what runs on top of it, and no more: members join and are armed, a cut divides them, the
// verdict goes to either side or the cut heals, members crash, are paused, resign, open a manager again,
// leave, and notice all that sooner or later. Which side a verdict goes to is not decided by any rule: either
// may win.
//
// # Guarantees
//
//   - A walk that finds something fails, and ends the walks that have not begun. So does an incomplete walk.
//     What was searched is logged.
//   - Nothing reads a clock or a random source: the same options find the same.
//   - A walk that is complete has tried every order of everything that its Options allow. Each state is
//     visited once, by a hash of 128 bits.
//
// # Non-guarantees
//
//   - With -short walks end at a number of states: they find what they come by.
//   - Time goes in steps of a second or more; all that happens, happens at such a moment. All times of
//     Options are even, so that deadlines meet.
//   - Messages need no time, but for those that are late. A message is called late only when nothing else
//     keeps the clock from moving: until then it may come at any moment anyhow.
//   - Of the questions of one kind from one member, a paused member finds the newest only when it goes on.
//   - Sides that were cut for good never meet again: a cut does not heal after its verdict.
//   - A member joins only a whole cluster, or what a verdict has left of one.
//
// # Assumptions
//
//   - It is imported by tests only: its flags are theirs.
//   - Every member notices a change of whom it reaches, and a verdict, within Options.Notice. A side without
//     an armed member decides nothing. A member is not armed before all others know it; a member that joins
//     knows all whom the members that it reaches know, until they have all heard of the newest verdict.
package walktest
