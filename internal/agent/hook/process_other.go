//go:build !unix

package hook

import (
	"fmt"
	"os"
	"os/exec"
	"time"
)

// There are no process groups here: a command is ended alone.
func ownGroup(*exec.Cmd) {}

func endGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }

func killGroup(*exec.Cmd, time.Time) {}

// signalNamed knows the one of config.Signals that can be done to another process here.
func signalNamed(name string) (os.Signal, error) {
	if name == "SIGKILL" {
		return os.Kill, nil
	}
	return nil, fmt.Errorf("%q cannot be sent on this system: only SIGKILL can", name)
}
