// Package process runs children for tests: real servers and agents that are killed, paused and continued, and
// that never outlive whoever started them.
//
//	thread := process.NewThread()
//	defer thread.Close()
//	p, err := process.Start(thread, process.Command{Name: "etcd", Program: path, Log: "etcd.log"})
//	defer p.Kill()
//
// # Guarantees
//
//   - On Linux a child dies with the process that started it, even if that one is killed.
//   - On Unix a child has a process group of its own: a Ctrl-C on the terminal is for the parent, and Kill
//     ends what the child has started.
//   - Whatever a child writes is in its log file; a restart appends.
//
// # Non-guarantees
//
//   - What a child has started is not killed by the kernel when the parent is: only the child is.
//
// # Assumptions
//
//   - Elsewhere than on Linux a killed parent leaves its children running.
package process
