// Package hook tells an operator's own programs about changes of this member: it runs the commands
// on-suspend, on-resume and on-down, and signals the process of a pid file.
//
// A command gets the facts twice: in its environment, for shell scripts, and as one JSON object on its
// standard input.
//
//	SBR_EVENT        suspend, resume or down
//	SBR_SYSTEM       the name of the cluster
//	SBR_MEMBER       the name of this member
//	SBR_INCARNATION  which start of it
//	SBR_INCIDENT     the id of the partition that it belongs to, as in the log and in the trace
//	SBR_TRACE        the id of the trace, as in the log; empty before the verdict
//	SBR_STATE        arming, up, suspended, waiting-for-lease or down
//	SBR_REASON       why, one sentence
//	SBR_AT           when, RFC 3339
//	SBR_TOKEN        the token of the newest verdict, 0 for none
//
// The JSON object has the same keys without SBR_ in lower case, and lists: unreachable, survivors, down.
//
// # Guarantees
//
//   - Nothing here holds up the downing: Suspended and Resumed return at once, Down within hooks.timeout,
//     Close within a few seconds; whatever the commands, their children, the file system or the reader of the
//     log do.
//   - A run that lasts hooks.timeout gets SIGTERM, and a second later SIGKILL, both with all processes of
//     its group. (Where there are no process groups, the command alone is killed.)
//   - on-suspend and on-resume run one at a time, in order. While one runs only the newest waiting change is
//     kept: suspend, resume, suspend behind a slow command become one suspend. So a command may run twice in
//     a row for the same event, and must be idempotent.
//   - on-down runs at once and last: it waits for nothing, the command of an earlier event is ended, no
//     command runs for a later event.
//   - The pid file is signalled beside on-down, at the same time. Only one positive number is a pid: a file
//     with anything else, with 0, 1 or the pid of this process is refused. On Linux the signal goes through a
//     pidfd: to the process that had the pid when it was looked up.
//   - What a command prints is logged when it has ended, line by line, 16 KiB of each of its outputs; the
//     rest is read and dropped.
//   - A failure is logged, and affects nothing else.
//
// # Non-guarantees
//
//   - A command may fail to do its work: it ran, or the log says why not.
//   - A process that a command leaves behind (a daemon) lives on when the command ended in time; its output
//     is read for one more second. A process that left the process group is never ended.
//   - A pid file whose process ended, and whose number was given to another since, names that other process.
//   - A command that this user may not signal (sudo), or that the kernel does not let go of, is not ended:
//     later changes wait for it. Down and Close do not.
//   - A fork that the kernel does not finish (an executable on a network file system that hangs) holds up the
//     other commands, not the caller.
//
// # Assumptions
//
//   - A user who may write the configuration or the pid file may run commands as this user.
package hook
