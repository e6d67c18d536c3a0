package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

func isPaused(pid int) bool { state, _ := Stat(pid); return state == "T" }

// Stat returns the state of a process, one letter, and its parent; X for one that is gone. It exists on Linux only.
func Stat(pid int) (state string, parent int) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "X", 0
	}
	// The program's name stands in brackets before the state and may hold anything.
	_, _ = fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &parent) // the kernel wrote it
	return state, parent
}

// Running reports whether any process of that number runs. A zombie does not: whoever inherits it may take its time. It exists on Linux only.
func Running(pid int) bool { state, _ := Stat(pid); return state != "X" && state != "Z" }

// Children returns the numbers of the processes that this one has started, or adopted, and that nobody has waited for. It exists on Linux only.
func Children() (pids []int, err error) {
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	for _, path := range tasks {
		text, _ := os.ReadFile(path) // threads end
		for word := range strings.FieldsSeq(string(text)) {
			pid, bad := strconv.Atoi(word)
			pids, err = append(pids, pid), errors.Join(err, bad)
		}
	}
	return pids, err
}
