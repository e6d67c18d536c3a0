//go:build linux

package lab

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// watchman is a shell outside of this process, and of the reach of a Ctrl-C, that waits for the end of a pipe
// whose other end only this process has, and then removes the lab. Nothing inside of a process can clean up
// after each of its possible ends.
type watchman struct {
	cmd  *exec.Cmd
	pipe io.Closer
}

// What etcd has stored is large, and tells nobody anything; the logs are left. The veth pairs have
// one end in the bridge's namespace and go with it; nothing that ran keeps a socket open when it is killed.
const watch = `cat >/dev/null
for pass in 1 2 3; do
  for ns in $(ip netns list | cut -d ' ' -f 1 | grep "^$1-"); do
    for pid in $(ip netns pids "$ns"); do kill -9 "$pid"; done
    ip netns del "$ns"
  done
done 2>/dev/null
rm -rf "$2"/*-kube/etcd`

func startWatchman(lab, dir string) (*watchman, error) {
	cmd := exec.Command("sh", "-c", watch, "watchman", lab, dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pipe, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("lab: watchman: %w", err)
	}
	return &watchman{cmd: cmd, pipe: pipe}, nil
}

// dismiss lets the watchman find that there is nothing to do.
func (w *watchman) dismiss() {
	_ = w.pipe.Close()
	// Its status is that of a search that finds nothing.
	_ = w.cmd.Wait()
}

// Watchman is the id of the process that removes this lab when the lab's own process ends without Close.
func (l *Lab) Watchman() int { return l.watchman.cmd.Process.Pid }
