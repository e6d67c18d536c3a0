//go:build unix && !linux

package program

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Only Linux lets a process adopt what its descendants leave behind, and ties a child's life to its parent's.
// Here the group is all there is.
func setSubreaper() error { return nil }

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func signalOrphans(unix.Signal, int) int { return 0 }

func alive(int) []int { return nil }

func reapOrphans(int) {}

func blockedInVfork(int) bool { return false }

// uptime is not to be had everywhere: then the parent alone judges the time.
func uptime() (time.Duration, bool) { return 0, false }
