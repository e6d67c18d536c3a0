// Package program runs a program that may run only as long as somebody says so, and ends it with everything
// that it has started.
//
// A Guard gives turns, one after the other: a time in which the program may run, with a fencing token.
// OverLease makes one of a lease, package attach one of a singleton that an agent of this machine decides
// about. Run waits for a turn, starts the program, tells it how long the turn is certain, ends it with the
// turn, and gives the turn back when nothing of the program is left.
//
// Three processes are involved: the one that calls Start (`sbr run`), a supervisor between them, and the
// program. The supervisor is this executable a second time; all it does is to look after one program. So it
// can adopt and end whatever the program leaves behind, it knows until when the program may run, and it is
// there when its parent is killed, stopped or starved.
//
//	p, err := program.Start(program.Options{Supervisor: []string{"sbr", "supervise"}, Path: "/usr/bin/backup", Until: until, …})
//	p.Extend(until)       // with each renewal of what allows it to run
//	p.Stop("downed")      // TERM, and KILL after Options.StopTimeout
//	<-p.Ended()           // the whole tree
//	p.Status()
//
// # Guarantees
//
//   - With Run the program runs in turns only, and a turn is given back only after everything that the
//     program has started has ended.
//   - When a turn is over the program is killed. It is told to end earlier where that is possible: when a
//     turn is not renewed, Turn.Notice before it would be over.
//   - Whoever waits under LeaseOptions.Once leaves only after the holder has shown that it lives, or has
//     released.
//   - Ended is closed when nothing of the program is left: its process group and, on Linux, every descendant,
//     also one that left the group or the session, or whose parents have ended. The kernel's word for it is
//     taken (there is no child left), not a list.
//   - At Options.Until (or what Extend made of it) the program is killed, Options.Notice before that it is
//     told to end. The supervisor judges by itself: it does so also while its parent is stopped, and at once
//     when both stood still beyond that moment. On Linux the time in which the machine was suspended counts.
//   - StopTimeout is time in which the supervisor ran: a program that stood still together with it still gets
//     its time to end in peace, except beyond Until.
//   - When the program ends by itself, what it has left behind is stopped.
//   - When the parent ends, however it ends, the supervisor stops the program with all that it has started.
//     When the supervisor is killed, on Linux the program is killed by the kernel, and the rest by the
//     parent.
//   - No signal is sent to a process that is not of the program: a number that was given to another process
//     meanwhile is recognised.
//
// # Non-guarantees
//
//   - A request that the program has sent before it was killed may arrive later: only a resource that checks
//     the fencing token is safe from it.
//   - Under LeaseOptions.Once a holder that dies after it was seen alive is followed by nobody.
//   - Parent and supervisor killed at the same time: the program is killed by the kernel, what it has started
//     goes on. So it is elsewhere than on Linux when the supervisor alone is killed, for the program, too.
//   - A process that this user may not signal (sudo), or that the kernel does not let go of (a disk that does
//     not answer), is not ended. It is waited for, and named in the log.
//   - A process that takes care to fork faster than it is killed, each time in a new session, may get away
//     for a while.
//   - Elsewhere than on Linux a process that left the process group is not found, and the supervisor does not
//     judge the time by itself.
//   - What the program has asked others to do (a service manager, a container engine, another host) goes on.
//
// # Assumptions
//
//   - Those of package lease.
//   - On Linux: /proc is mounted, and is that of this process's own pid namespace.
//   - Nobody else starts children in process groups of their own from the calling process: if the supervisor
//     is killed, they are taken for the program's.
package program
