//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/serf-sbr/serf-sbr/test/process"
)

// Supervisor keeps a process running on a host, as a service manager does with Restart=always. Its methods
// may be called from several goroutines.
type Supervisor struct {
	host    *Host
	command process.Command
	delay   time.Duration
	final   []int
	stop    chan struct{} // closed by close
	done    chan struct{} // closed when nothing is started any more
	changed chan struct{} // receives one value for a change of on

	mu      sync.Mutex
	on      bool
	current *process.Process
	exits   []process.Exit
	failed  error
}

// Supervise starts a process and, each time it ends, starts it again after delay; with a delay below zero
// only once SetRestart has switched that on. A process that ends with one of the final exit statuses is never
// started again, as with RestartPreventExitStatus of systemd: Err tells of it then. It ends with the lab.
func (h *Host) Supervise(c process.Command, delay time.Duration, final ...int) (*Supervisor, error) {
	s := &Supervisor{
		host: h, command: c, delay: delay, final: final, on: delay >= 0,
		stop: make(chan struct{}), done: make(chan struct{}), changed: make(chan struct{}, 1),
	}
	h.mu.Lock()
	h.supervisors = append(h.supervisors, s)
	h.mu.Unlock()
	if _, err := s.start(true); err != nil {
		close(s.done)
		return nil, err
	}
	go s.run()
	return s, nil
}

func (s *Supervisor) run() {
	defer close(s.done)
	for {
		p := s.Process()
		<-p.Exited()
		exit, _ := p.Wait(context.Background())
		s.mu.Lock()
		s.exits = append(s.exits, exit)
		s.mu.Unlock()
		if slices.Contains(s.final, exit.Code) {
			s.fail(fmt.Errorf("lab: %s on %s ended with status %d, after which it is not started again: %s",
				s.command.Name, s.host.name, exit.Code, p.LastLogLine()))
			return
		}
		if err := s.startAgain(); err != nil {
			s.fail(err)
			return
		}
	}
}

func (s *Supervisor) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = err
}

// SetProgram changes the program that is started from the next start on, as the upgrade of a package does.
func (s *Supervisor) SetProgram(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.command.Program = path
}

// AddArgs adds arguments from the next start on, as a drop-in of a unit does.
func (s *Supervisor) AddArgs(args ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.command.Args = append(slices.Clone(s.command.Args), args...)
}

// startAgain starts the process after the delay, once the supervisor is on.
func (s *Supervisor) startAgain() error {
	timer := time.NewTimer(s.delay)
	defer timer.Stop()
	due := false
	for {
		if due {
			if started, err := s.start(false); started || err != nil {
				return err
			}
		}
		select {
		case <-s.stop:
			return errClosed
		case <-timer.C:
			due = true
		case <-s.changed:
		}
	}
}

var errClosed = errors.New("lab: it is closed")

// start asks and starts in one, so that nothing is started after SetRestart has switched that off; the first
// time the process is started even so.
func (s *Supervisor) start(first bool) (started bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.stop:
		return false, errClosed
	default:
	}
	if !first && !s.on {
		return false, nil
	}
	p, err := s.host.Start(s.command)
	if err == nil {
		s.current = p
	}
	return err == nil, err
}

// SetRestart says whether the process is started again when it has ended. A process that has ended meanwhile
// is started at once when it is switched on.
func (s *Supervisor) SetRestart(on bool) {
	s.mu.Lock()
	s.on = on
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default: // a change that has not been looked at yet
	}
}

// Process is the process that runs, or the last one.
func (s *Supervisor) Process() *process.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// Exits are the ends so far, in order.
func (s *Supervisor) Exits() []process.Exit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.exits)
}

// Err is why the process cannot be or is not started again; nil: nothing is wrong.
func (s *Supervisor) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// WaitExit returns the nth end, from 1, or an error when ctx ends first.
func (s *Supervisor) WaitExit(ctx context.Context, n int) (process.Exit, error) {
	for {
		if exits := s.Exits(); len(exits) >= n {
			return exits[n-1], nil
		}
		if !slept(ctx, emptyPoll) {
			return process.Exit{}, fmt.Errorf("lab: %s on %s has not ended %d times: %w", s.command.Name, s.host.name,
				n, context.Cause(ctx))
		}
	}
}

// close ends the process for good.
func (s *Supervisor) close() {
	s.mu.Lock()
	close(s.stop)
	current := s.current
	s.mu.Unlock()
	current.Kill()
	<-s.done
}

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
