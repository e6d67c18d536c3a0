// Package proc looks at other processes, for tests on Linux.
package proc

import (
	"bytes"
	"fmt"
	"os"
)

// Stat returns the state of a process, one letter, and its parent; X if there is no such process.
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
// late.
func Running(pid int) bool { state, _ := Stat(pid); return state != "X" && state != "Z" }
