// Package process runs children for tests: real servers and agents that are killed, paused and continued, and
// that never outlive their parent.
//
//	thread := process.NewThread()
//	defer thread.Close()
//	p, err := process.Start(thread, process.Command{Name: "etcd", Program: path, Log: "etcd.log"})
//	defer p.Kill()
//
// # Guarantees
//
//   - On Linux a child dies with the process that started it, even if that process is killed.
//   - On Unix a child has a process group of its own: a Ctrl-C on the terminal is for the parent, and Kill
//     ends what the child has started.
//   - Whatever a child writes is in its log file; a restart appends.
//
// # Non-guarantees
//
//   - When the parent is killed, the kernel kills the child but not the child's own children.
//
// # Assumptions
//
//   - Elsewhere than on Linux a killed parent leaves its children running.
package process
