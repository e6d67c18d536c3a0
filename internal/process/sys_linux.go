package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
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

// Stat returns the state of a process, one letter, and its parent; X if there is no such process. It exists
// on Linux only.
func Stat(pid int) (state string, parent int) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "X", 0
	}
	// The program's name stands in brackets before the state and may hold anything.
	_, _ = fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &parent) // the kernel wrote it
	return state, parent
}

// Running reports whether any process of that number runs. A zombie does not: its new parent may reap it
// late. It exists on Linux only.
func Running(pid int) bool { state, _ := Stat(pid); return state != "X" && state != "Z" }

// children returns the numbers of the processes that a process has started, or adopted, and not reaped.
func children(of int) (pids []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", of))
	for _, path := range tasks {
		text, _ := os.ReadFile(path) // threads end
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil { // the kernel wrote it
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// end kills processes, and returns when none of them runs.
func end(pids []int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		for Running(pid) {
			time.Sleep(time.Millisecond)
		}
	}
}
