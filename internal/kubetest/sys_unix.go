//go:build unix && !linux

package kubetest

import "syscall"

const (
	pauseSignal    = syscall.SIGSTOP
	continueSignal = syscall.SIGCONT
)

// Only Linux can tie a child's life to its parent's: elsewhere a killed test leaves its children running.
func childAttributes() *syscall.SysProcAttr { return nil }

func isPaused(int) bool { return true }
