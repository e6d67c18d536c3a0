//go:build unix

package hook

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ownGroup starts a command as the leader of a process group, so that its children can be ended with it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func endGroup(cmd *exec.Cmd) error {
	err := unix.Kill(-cmd.Process.Pid, unix.SIGTERM)
	if errors.Is(err, unix.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// killGroup kills at that moment what is left of the group of a command that has ended. The number of a group
// is not given away as long as it has processes.
func killGroup(cmd *exec.Cmd, at time.Time) {
	group := -cmd.Process.Pid
	for unix.Kill(group, 0) == nil && time.Now().Before(at) {
		time.Sleep(min(time.Until(at), lookAgain))
	}
	_ = unix.Kill(group, unix.SIGKILL) // there is mostly nobody left
}

// lookAgain is the time between two looks at a group that is ending; nothing tells when it has ended.
const lookAgain = 20 * time.Millisecond

// signalNamed returns the signal of a name of config.Signals.
func signalNamed(name string) (os.Signal, error) { return unix.SignalNum(name), nil }
