// Package guard runs a program only while somebody allows it.
//
// A Guard gives turns, one after the other: a time in which the program may run, with a fencing token. OverLease makes one of a lease,
// OverAgent one of a singleton that an agent of this machine decides about. Run
// waits for a turn, starts the program (see package program), tells it how long the turn is certain, ends it with the turn, and gives the turn
// back when nothing of the program is left.
//
// # Guarantees
//
//   - The program runs in turns only, and a turn is given back only after everything that the program has started has ended.
//   - When a turn is over the program is killed. It is told to end earlier where that is possible: when a turn is not renewed, Turn.Notice
//     before it would be over.
//   - Whoever waits under Options.Once leaves only after the holder has shown that it lives, or has released.
//
// # Non-guarantees
//
//   - A request that the program has sent before it was killed may arrive later: only a resource that checks the fencing token is safe from it.
//   - Under Options.Once a holder that dies after it was seen alive is followed by nobody.
//
// # Assumptions
//
//   - Those of packages lease and program.
package guard
