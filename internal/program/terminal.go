//go:build unix

package program

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// terminal is the process group of this process if it has the terminal that is the standard input, else zero.
func terminal() int {
	group, err := unix.IoctlGetInt(int(os.Stdin.Fd()), unix.TIOCGPGRP)
	if own := unix.Getpgrp(); err == nil && group == own {
		return own
	}
	return 0
}

// give makes a process group that of the terminal. Whoever does so without having it would be stopped by a signal.
func give(group int) {
	signal.Ignore(unix.SIGTTOU)
	defer signal.Reset(unix.SIGTTOU)
	_ = unix.IoctlSetPointerInt(int(os.Stdin.Fd()), unix.TIOCSPGRP, group) // it may have hung up
}
