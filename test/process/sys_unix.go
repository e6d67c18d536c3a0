//go:build unix && !linux

package process

import "syscall"

const (
	pauseSignal    = syscall.SIGSTOP
	continueSignal = syscall.SIGCONT
)

// Only Linux can tie a child's life to its parent's.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

func isPaused(int) bool { return true }

func children(int) []int { return nil }

func end([]int) {}
