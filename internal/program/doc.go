// Package program runs a program that may run only during its turns, and ends it with everything that it has
// started.
//
// A Guard gives turns, one after the other: a time in which the program may run, with a fencing token.
// OverLease makes a Guard of a lease, package attach one of a singleton that an agent of this machine
// decides. Run waits for a turn, starts the program, tells it how long the turn is certain, ends it with the
// turn, and releases the turn when nothing of the program is left.
//
// Three processes are involved: the parent that calls Start (`sbr run`), a supervisor, and the program. The
// supervisor is this executable a second time; it only supervises one program. So it can adopt and end what
// the program leaves behind, it knows until when the program may run, and it goes on when its parent is
// killed, stopped or starved.
//
//	p, err := program.Start(program.Options{Supervisor: []string{"sbr", "supervise"}, Path: "/usr/bin/backup", Until: until, …})
//	p.Extend(until)       // with each renewal of what allows it to run
//	p.Stop("downed")      // TERM, and KILL after Options.StopTimeout
//	<-p.Ended()           // the whole tree
//	p.Status()
//
// # Guarantees
//
//   - With Run the program runs in turns only, and a turn is released only after everything that the program
//     has started has ended.
//   - When a turn is over the program is killed. Where possible it is asked to end earlier: when a turn is
//     not renewed, Turn.Notice before its end.
//   - Under LeaseOptions.Once a waiting process leaves only after a heartbeat of the holder, or its release.
//     A holder that has not started the program does not release, unless the lease would never expire.
//   - Ended is closed when nothing of the program is left: its process group and, on Linux, every descendant,
//     also a descendant that left the group or the session, or whose parents have ended. The proof is the
//     kernel's answer that no child is left, not a list.
//   - At Options.Until (or what Extend made of it) the program is killed; Options.Notice before that it is
//     asked to end. The supervisor decides by itself: also while its parent is stopped, and at once after a
//     pause of both beyond that moment. On Linux the time in which the machine was suspended counts.
//   - StopTimeout does not count pauses of the supervisor: a program that was paused together with it still
//     gets its time to end, except beyond Until.
//   - When the program ends by itself, the processes that it has left behind are stopped.
//   - When the parent ends, however it ends, the supervisor stops the program with all that it has started.
//     When the supervisor is killed, on Linux the kernel kills the program, and the parent the rest.
//   - The file Options.Lock stays locked until nothing of the program is left: the supervisor has it as well.
//   - No signal is sent to a process that is not of the program: a process number that was reused meanwhile
//     is recognised.
//
// # Non-guarantees
//
//   - A request that the program has sent before it was killed may arrive later: only a resource that checks
//     the fencing token is safe from it.
//   - Under LeaseOptions.Once a holder that dies after it was seen alive has no successor.
//   - Parent and supervisor killed at the same time: the kernel kills the program, but its descendants go on.
//     Elsewhere than on Linux, when the supervisor alone is killed, the program goes on, too.
//   - A process that this user may not signal (sudo), or that the kernel does not let go of (a disk that does
//     not answer), is not ended. The supervisor waits for it, and the log names it.
//   - A process that takes care to fork faster than it is killed, each time in a new session, may get away
//     for a while.
//   - Elsewhere than on Linux a process that left the process group is not found, and the supervisor does not
//     check the time by itself.
//   - Work that the program has given to a service manager, a container engine or another host goes on.
//
// # Assumptions
//
//   - Those of package lease.
//   - On Linux: /proc is mounted, for this process's own pid namespace.
//   - Nothing else in the calling process starts children in process groups of their own: if the supervisor
//     is killed, they are taken for the program's.
package program
