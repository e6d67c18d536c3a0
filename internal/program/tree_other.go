//go:build unix && !linux

package program

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Only Linux lets a process adopt what its descendants leave behind, and ties a child's life to its parent's. Here the group is all there is.
func adopt() error { return nil }

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func stray(unix.Signal, int) (found int, refused []int) { return 0, nil }

func alive(int) []int { return nil }

func bury(int) {}

func held(int) bool { return false }

// uptime is not to be had everywhere: then the parent alone judges the time.
func uptime() (time.Duration, bool) { return 0, false }
