//go:build unix

package program

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/serf-sbr/serf-sbr/internal/patience"
)

const (
	// startTimeout bounds the start of the supervisor and of the program: executables may be on a disk that
	// does not answer.
	startTimeout = 30 * time.Second
	// answerTimeout is how long a supervisor may take to answer that it kills. It does nothing else.
	answerTimeout = time.Second
)

// Program is a program that was started, as its parent sees it. Its methods may be called from several
// goroutines, also after its end.
type Program struct {
	log        *slog.Logger
	supervisor *exec.Cmd
	conn       *os.File
	pid        int
	// restore is the process group that gets the terminal back. Zero: none.
	restore int

	mu sync.Mutex // one writer
	to *json.Encoder

	kill     sync.Once
	answered chan struct{} // the supervisor kills, or has ended
	answer   func()        // closes answered
	ended    chan struct{}
	status   Status
}

// Start starts a supervisor and has it start the program, with the standard input and outputs of this
// process, as the leader of a process group. If that input is a terminal with this process in the foreground,
// the program gets the terminal; a program that is stopped from the keyboard is continued, because its turn
// goes on.
//
// The error wraps ErrTooLate, or says why the file cannot be executed, or why ending the program could not be
// guaranteed here; nothing runs then. It may take 30 s where a disk does not answer. The calling process
// adopts orphans from now on.
func Start(o Options) (*Program, error) {
	if err := setSubreaper(); err != nil {
		return nil, err
	}
	p := &Program{log: cmp.Or(o.Log, slog.Default()), restore: terminal(), answered: make(chan struct{}),
		ended: make(chan struct{})}
	p.answer = sync.OnceFunc(func() { close(p.answered) })
	if err := p.startSupervisor(&o); err != nil {
		return nil, fmt.Errorf("program: its supervisor does not start: %w", err)
	}
	reports := json.NewDecoder(p.conn)
	if err := p.startProgram(o, reports); err != nil {
		p.abandon()
		return nil, err
	}
	go p.follow(reports)
	return p, nil
}

func (p *Program) startSupervisor(o *Options) error {
	self, err := executable()
	if err != nil {
		return err
	}
	ours, theirs, err := pair()
	if err != nil {
		return err
	}
	defer func() { _ = theirs.Close() }() // the supervisor has its own handle
	p.conn, p.to = ours, json.NewEncoder(ours)
	p.supervisor = &exec.Cmd{
		Path: self, Args: o.Supervisor, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		ExtraFiles:  []*os.File{theirs},
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true}, // keyboard signals are not for the supervisor
	}
	if o.Lock != nil {
		p.supervisor.ExtraFiles = append(p.supervisor.ExtraFiles, o.Lock)
	}
	if err := p.supervisor.Start(); err != nil {
		_ = ours.Close() // nothing was written
		return err
	}
	return nil
}

// TryLock locks a file. It returns nil where another process has locked it, or a supervisor that got it as
// Options.Lock. Closing the file unlocks it.
func TryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		return f, nil
	}
	_ = f.Close() // nothing was written
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, os.NewSyscallError("flock", err)
}

// executable is the file that this process runs.
func executable() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil // the same executable, even if its file was replaced meanwhile
	}
	return os.Executable()
}

// pair returns the two ends of a connection. The first one can be written to with a deadline.
func pair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fds[0]), "supervisor"), os.NewFile(uintptr(fds[1]), "parent"), nil
}

func (p *Program) startProgram(o Options, reports *json.Decoder) error {
	ctx, cancel := patience.WithTimeout(context.Background(), startTimeout,
		fmt.Errorf("program: %s does not start within %v", o.Path, startTimeout))
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = p.conn.SetDeadline(time.Unix(1, 0)) })()
	var r report
	err := p.to.Encode(order{Start: &start{
		Options: o, Path: words{o.Path}, Args: o.Args, Env: o.Env, Orphaned: o.Orphaned,
		Limit: limitOf(o.Until), Terminal: p.restore,
	}})
	if err == nil {
		err = reports.Decode(&r)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("program: its supervisor does not answer: %w", err)
	case r.Late:
		return ErrTooLate
	case r.Problem != "":
		return errors.New(r.Problem)
	}
	p.pid = r.Pid
	return nil
}

// Pid is the number of the program's process, and of its process group.
func (p *Program) Pid() int { return p.pid }

// Extend moves the moment at which the program must have ended. Zero: there is none.
func (p *Program) Extend(until time.Time) {
	l := limitOf(until)
	_ = p.send(order{Extend: &l}) // if it is lost, the supervisor ends the program too early
}

// Signal forwards a signal: signals of a keyboard to the whole process group, others to the program alone.
func (p *Program) Signal(sig syscall.Signal) { _ = p.send(order{Signal: int(sig)}) }

// Stop asks the program to end by a signal to its process group, and to processes that have left the group;
// processes that are left after Options.StopTimeout are killed. If the program is being stopped already, Stop
// acts as Signal.
func (p *Program) Stop(why string, sig syscall.Signal) {
	if p.send(order{Stop: why, Signal: int(sig)}) != nil {
		p.Kill(why)
	}
}

// Kill ends the program and all that it has started at once. If the supervisor does not do so within a
// second, this process kills the supervisor and the rest.
func (p *Program) Kill(why string) {
	p.kill.Do(func() {
		err := p.send(order{Kill: why})
		go func() {
			ctx, cancel := patience.WithTimeout(context.Background(), answerTimeout, context.DeadlineExceeded)
			defer cancel()
			if err == nil {
				select {
				case <-p.answered:
					return
				case <-ctx.Done():
				}
			}
			_ = p.supervisor.Process.Kill() // it may have ended
		}()
	})
}

// Ended is closed when nothing of the program is left.
func (p *Program) Ended() <-chan struct{} { return p.ended }

// Status is how the program has ended. It means nothing before Ended is closed.
func (p *Program) Status() Status { return p.status }

// send never waits for long for a paused supervisor.
func (p *Program) send(o order) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.conn.SetWriteDeadline(time.Now().Add(answerTimeout)) // it can: see pair
	return p.to.Encode(o)
}

// follow reads what the supervisor reports, to the end.
func (p *Program) follow(from *json.Decoder) {
	var last *Status
	for last == nil {
		var r report
		if from.Decode(&r) != nil {
			break
		}
		switch {
		case r.Stopping != "":
			p.log.Info("sbr: stopping the program", "pid", p.pid, "because", r.Stopping)
		case r.Killing != "":
			p.log.Warn("sbr: killing the program and all that it has started", "pid", p.pid, "because", r.Killing)
			p.answer()
		case len(r.Left) > 0:
			p.log.Error("sbr: processes of the program do not end although they were killed; waiting for them",
				"pids", r.Left)
		}
		last = r.Ended
	}
	if last != nil {
		p.status = *last
		p.stopSupervisor()
	} else {
		p.log.Error("sbr: the supervisor of the program has ended before it; killing the program and all that it has started", "pid", p.pid)
		p.status = Status{Signal: int(unix.SIGKILL), Because: "its supervisor was killed"}
		p.abandon()
	}
	p.answer()
	close(p.ended)
}

// stopSupervisor ends the supervisor when its work is done.
func (p *Program) stopSupervisor() {
	_ = p.supervisor.Process.Kill()
	_ = p.supervisor.Wait()
	_ = p.conn.Close()
}

// abandon ends the program without its supervisor. The supervisor's descendants are this process's now; other
// children of this process are in its own process group.
func (p *Program) abandon() {
	p.stopSupervisor()
	warned := time.Now()
	for quiet, pause := 0, time.Millisecond; quiet < 2; pause = min(2*pause, lookAgain/4) {
		if quiet++; p.sweep() {
			quiet = 0
		}
		if time.Since(warned) > complainEvery {
			warned = time.Now()
			p.log.Error("sbr: processes of the program do not end although they were killed; waiting for them", "pids",
				alive(unix.Getpgrp()))
		}
		time.Sleep(pause)
	}
	if p.restore != 0 {
		give(p.restore)
	}
}

// sweep kills the processes that are there now, and reports whether there were any.
func (p *Program) sweep() bool {
	if runtime.GOOS != "linux" {
		return p.pid != 0 && unix.Kill(-p.pid, unix.SIGKILL) == nil
	}
	found := signalOrphans(unix.SIGKILL, unix.Getpgrp())
	reapOrphans(unix.Getpgrp())
	return found > 0
}
