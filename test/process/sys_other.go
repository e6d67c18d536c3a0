//go:build !unix

package process

import "syscall"

// These systems have no such signals: sending one returns an error, which is what a caller of Pause should
// see.
const (
	pauseSignal    = syscall.Signal(-1)
	continueSignal = syscall.Signal(-1)
)

func childAttributes() *syscall.SysProcAttr { return nil }

func killGroup(int) {}

func isPaused(int) bool { return false }

func children(int) []int { return nil }

func end([]int) {}
