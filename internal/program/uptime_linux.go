package program

import (
	"time"

	"golang.org/x/sys/unix"
)

// uptime is a clock that all processes share, that nobody sets, and that goes on while the machine is suspended.
func uptime() (time.Duration, bool) {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
