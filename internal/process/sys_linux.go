package process

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

const (
	pauseSignal    = syscall.SIGSTOP
	continueSignal = syscall.SIGCONT
)

// childAttributes makes the kernel kill the child when the thread that started it dies: see Thread.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

func isPaused(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// The program's name stands in brackets before the state and may hold anything.
	_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')'):], []byte(" "))
	return bytes.HasPrefix(state, []byte("T"))
}

// Running reports whether any process of that number runs. A zombie does not: whoever inherits it may take its time. It exists on Linux only.
func Running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(stat, []byte(") Z "))
}
