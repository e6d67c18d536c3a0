//go:build unix

package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/serf-sbr/serf-sbr/internal/patience"
)

const (
	// supervisorFD is the supervisor's connection to its parent.
	supervisorFD = 3
	// lockFD is Options.Lock: the supervisor only has it.
	lockFD = 4
)

// Supervise is the life of a supervisor. It returns when nothing of the program is left.
func Supervise() error {
	if _, err := unix.GetsockoptInt(supervisorFD, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		return fmt.Errorf("%w: %w", ErrNotSupervisor, err)
	}
	// The kernel kills the program when the thread that started it ends, and this thread does not end before
	// the process.
	runtime.LockOSThread()
	children := ignoreProgramSignals()
	unix.CloseOnExec(supervisorFD)
	unix.CloseOnExec(lockFD) // where there is one
	parent := os.NewFile(supervisorFD, "parent")
	decoder := json.NewDecoder(parent)
	var first order
	switch err := decoder.Decode(&first); {
	case errors.Is(err, io.EOF):
		return nil // its parent has ended before it could say what to start
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNotSupervisor, err)
	case first.Start == nil || len(first.Start.Path) != 1:
		return ErrNotSupervisor
	}
	s := &supervisor{start: *first.Start, until: first.Start.Limit, to: json.NewEncoder(parent),
		cancel: func() {}}
	err := setSubreaper()
	if err == nil {
		err = s.fork()
	}
	if err != nil {
		s.tell(report{Problem: err.Error(), Late: errors.Is(err, ErrTooLate)})
		return nil
	}
	s.tell(report{Pid: s.pid})
	if orphaned := s.run(receive(decoder), children); orphaned && len(s.start.Orphaned) > 0 {
		return s.giveBack()
	}
	return nil
}

// giveBack runs the command that releases the parent's turn. Its output goes to standard error: standard
// output is the program's.
func (s *supervisor) giveBack() error {
	self, err := executable()
	if err != nil {
		return err
	}
	c := &exec.Cmd{Path: self, Args: s.start.Orphaned, Stdout: os.Stderr, Stderr: os.Stderr}
	return c.Run()
}

// ignoreProgramSignals makes this process ignore signals meant for the program, in such a way that the
// program does not: an exec resets signals with a handler. The channel receives when a child has changed.
func ignoreProgramSignals() <-chan os.Signal {
	unheard := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1,
		unix.SIGUSR2, unix.SIGTSTP, unix.SIGPIPE} {
		if !signal.Ignored(sig) {
			signal.Notify(unheard, sig)
		}
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	return children
}

// receive reads orders until the parent has ended.
func receive(from *json.Decoder) <-chan order {
	orders := make(chan order)
	go func() {
		defer close(orders)
		for {
			var o order
			if from.Decode(&o) != nil {
				return
			}
			orders <- o
		}
	}()
	return orders
}

// supervisor supervises one program. It belongs to one goroutine, which both waits for processes and sends
// them signals.
type supervisor struct {
	start start
	until limit
	to    *json.Encoder

	pid int
	// status is how the program itself has ended. Until it is known no other process can have the number of
	// the program, or of its group.
	status *Status

	stopping, killing bool
	because           string
	// over ends when the program has had its time to end.
	over   context.Context
	cancel context.CancelFunc
	// looks counts the checks for the end of a program that is being stopped or killed. warned is when the
	// last warning was.
	looks  int
	warned time.Time
}

// tell reports to the parent. If the parent has ended, run notices the end of its orders.
func (s *supervisor) tell(r report) { _ = s.to.Encode(r) }

func (s *supervisor) fork() error {
	if left, ok := s.until.left(); ok && left <= s.start.Notice { // it would be asked to end at once
		return ErrTooLate
	}
	pid, err := syscall.ForkExec(s.start.Path[0], s.start.Args,
		&syscall.ProcAttr{Env: s.start.Env, Files: []uintptr{0, 1, 2}, Sys: attributes()})
	if err != nil {
		return &os.PathError{Op: "start", Path: s.start.Path[0], Err: err}
	}
	s.pid = pid
	if s.start.Terminal != 0 {
		give(pid)
	}
	return nil
}

// run supervises the program until nothing of it is left, and reports whether its parent has ended before.
func (s *supervisor) run(orders <-chan order, children <-chan os.Signal) (orphaned bool) {
	s.over = context.Background()
	for !s.gone() {
		s.judge()
		select {
		case o, ok := <-orders:
			if !ok {
				orders, orphaned = nil, true
				s.stop("sbr run has ended", unix.SIGTERM)
				break
			}
			s.obey(o)
		case <-children:
		case <-s.over.Done():
			s.kill(context.Cause(s.over).Error())
		case <-time.After(s.pause()):
			if s.start.Terminal != 0 && s.status == nil && blockedInVfork(s.pid) {
				s.signal(-s.pid, unix.SIGCONT) // Ctrl-Z
			}
		}
	}
	s.cancel()
	if s.start.Terminal != 0 {
		give(s.start.Terminal)
	}
	s.tell(report{Ended: s.status})
	return orphaned
}

// gone reaps ended processes, and reports whether none is left.
func (s *supervisor) gone() bool {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, unix.WNOHANG|unix.WUNTRACED, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ECHILD): // the top of any remaining tree is a child of this process
			return s.status != nil && !s.grouped()
		case err != nil || pid == 0:
			return false
		case pid != s.pid:
		case ws.Stopped():
			s.resume(ws.StopSignal())
		case ws.Signaled():
			s.status = &Status{Signal: int(ws.Signal()), Because: s.because}
		case ws.Exited():
			s.status = &Status{Code: ws.ExitStatus(), Because: s.because}
		}
	}
}

// grouped reports whether the group of the program has processes that are not descendants of this process, on
// systems without adoption.
func (s *supervisor) grouped() bool {
	return runtime.GOOS != "linux" && !errors.Is(unix.Kill(-s.pid, 0), unix.ESRCH)
}

// resume continues a program that the terminal has stopped: no shell could continue it, and it would lose its
// turn.
func (s *supervisor) resume(by syscall.Signal) {
	if s.start.Terminal != 0 && (by == unix.SIGTSTP || by == unix.SIGTTIN || by == unix.SIGTTOU) {
		s.signal(-s.pid, unix.SIGCONT)
	}
}

// judge decides what needs no order of the parent.
func (s *supervisor) judge() {
	if s.status != nil {
		s.stop("it has ended, but not all that it has started", unix.SIGTERM)
	}
	if left, ok := s.until.left(); ok && left <= 0 {
		s.kill("the permit expired and was not renewed")
	} else if ok && left <= s.start.Notice {
		s.stop("its time is nearly over, and was not extended", unix.SIGTERM)
	}
	if s.killing {
		s.killAll()
	}
}

// lookAgain is how often the limits are checked while nothing happens: their clock is not the clock of
// timers.
const lookAgain = time.Second

// pause is how long nothing needs to be done unless something happens.
func (s *supervisor) pause() time.Duration {
	d := lookAgain
	if s.stopping { // others wait for the end: check for it as well, in case its signal comes late
		s.looks++
		d = min(time.Millisecond<<min(s.looks, 8), lookAgain/4)
	}
	if s.killing {
		return d
	}
	if left, ok := s.until.left(); ok {
		for _, next := range []time.Duration{left, left - s.start.Notice} {
			if next > 0 {
				d = min(d, next)
			}
		}
	}
	return d
}

func (s *supervisor) obey(o order) {
	switch sig := unix.Signal(o.Signal); {
	case o.Extend != nil:
		s.until = *o.Extend
	case o.Kill != "":
		s.kill(o.Kill)
	case o.Stop != "" && !s.stopping:
		s.stop(o.Stop, sig)
	case sig == unix.SIGINT || sig == unix.SIGQUIT || sig == unix.SIGTERM: // as from a terminal
		s.signal(-s.pid, sig)
	default:
		s.signal(s.pid, sig)
	}
}

// signal signals the program (or, with its negative number, its group) as long as the number is certainly the
// program's.
func (s *supervisor) signal(target int, sig unix.Signal) {
	if s.status == nil || runtime.GOOS != "linux" {
		_ = unix.Kill(target, sig) // it may have ended
	}
}

// own is the group that signal can reach.
func (s *supervisor) own() int {
	if s.status == nil {
		return s.pid
	}
	return 0
}

// stop asks all processes to end, once.
func (s *supervisor) stop(why string, sig unix.Signal) {
	if s.stopping {
		return
	}
	s.stopping, s.because = true, why
	s.tell(report{Stopping: why})
	s.over, s.cancel = patience.WithTimeout(context.Background(), s.start.StopTimeout,
		fmt.Errorf("it did not end within %v", s.start.StopTimeout))
	s.signal(-s.pid, sig)
	s.signal(-s.pid, unix.SIGCONT) // a stopped process would not notice
	signalOrphans(sig, s.own())
}

func (s *supervisor) kill(why string) {
	if s.killing {
		return
	}
	if !s.stopping {
		s.stopping, s.because = true, why
	}
	s.killing, s.warned, s.looks = true, time.Now(), 0
	s.cancel()
	s.over = context.Background()
	s.tell(report{Killing: why})
}

// complainEvery is how often the log names processes that do not end.
const complainEvery = 10 * time.Second

// killAll kills all processes that are there now. It is repeated until none is left: a process may fork
// meanwhile.
func (s *supervisor) killAll() {
	s.signal(-s.pid, unix.SIGKILL)
	signalOrphans(unix.SIGKILL, 0)
	if time.Since(s.warned) > complainEvery {
		s.warned = time.Now()
		s.tell(report{Left: alive(0)})
	}
}

// terminal is the process group of this process if it has the terminal that is the standard input, else zero.
func terminal() int {
	group, err := unix.IoctlGetInt(int(os.Stdin.Fd()), unix.TIOCGPGRP)
	if own := unix.Getpgrp(); err == nil && group == own {
		return own
	}
	return 0
}

// give makes a process group the foreground group of the terminal. A signal would stop a process that does so
// in the background.
func give(group int) {
	signal.Ignore(unix.SIGTTOU)
	defer signal.Reset(unix.SIGTTOU)
	_ = unix.IoctlSetPointerInt(int(os.Stdin.Fd()), unix.TIOCSPGRP, group) // it may have hung up
}
