package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/proc"
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

func isPaused(pid int) bool { state, _ := proc.Stat(pid); return state == "T" }

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
		for proc.Running(pid) {
			time.Sleep(time.Millisecond)
		}
	}
}
