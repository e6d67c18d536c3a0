package program

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// setSubreaper makes this process the parent of its orphaned descendants.
func setSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("program: cannot adopt what a program leaves behind: %w", err)
	}
	return checkProc()
}

// attributes make the kernel kill the program when the thread that started it dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// others are the descendants of this process, zombies included, apart from those in the group except.
func others(except int) []process {
	return slices.DeleteFunc(descendants(os.Getpid()), func(p process) bool { return p.group == except })
}

// signalOrphans sends sig to all of the others, and returns how many there are. alive lists those that cannot
// be signalled.
func signalOrphans(sig unix.Signal, except int) int {
	all := others(except)
	for _, p := range all {
		if !p.zombie() {
			_ = p.send(sig) // it may have ended
		}
	}
	return len(all)
}

// alive are those of the others that have not ended.
func alive(except int) (pids []int) {
	for _, p := range others(except) {
		if !p.zombie() {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// reapOrphans waits for the ended children of this process among the others: no other code does.
func reapOrphans(except int) {
	for _, p := range others(except) {
		if p.zombie() && p.parent == os.Getpid() {
			_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil)
		}
	}
}

// blockedInVfork reports whether a program waits uninterruptibly for its vfork child, which was stopped
// before its exec. The parent does not learn of that, so nothing would continue the child.
func blockedInVfork(pid int) bool {
	if p, err := lookUp(strconv.Itoa(pid)); err != nil || p.state != 'D' {
		return false
	}
	return slices.ContainsFunc(descendants(pid), func(p process) bool {
		return p.parent == pid && p.group == pid && p.state == 'T'
	})
}

// uptime is a clock that all processes share, that cannot be set, and that goes on while the machine is
// suspended.
func uptime() (time.Duration, bool) {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
