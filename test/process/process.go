package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const pollEvery = 5 * time.Millisecond

// ErrEnded is returned by Signal for a process that has ended, or was never started.
var ErrEnded = errors.New("process: no process to signal: it has ended or was never started")

// Command says what to start.
type Command struct {
	// Name names the command in errors.
	Name string
	// Program is the path of the executable, Args what follows it on the command line.
	Program string
	Args    []string
	// Env is its environment; nil: that of this process.
	Env []string
	// Dir is its working folder; empty: that of this process.
	Dir string
	// Log is the file that its output is appended to.
	Log string
}

// Process is a started child. Its methods may be called from several goroutines; the methods of a nil Process
// treat it as ended.
type Process struct {
	command Command
	logFrom int64
	cmd     *exec.Cmd
	started time.Time
	ended   time.Time
	exited  chan struct{}
}

// Start starts a child from the thread. An error is returned when there is no such program, or the log cannot
// be written.
func Start(t *Thread, c Command) (*Process, error) {
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("process: %s: log file: %w", c.Name, err)
	}
	// The child has its own handle.
	defer func() { _ = log.Close() }()
	logFrom, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("process: %s: log file: %w", c.Name, err)
	}
	cmd := exec.Command(c.Program, c.Args...)
	cmd.Stdout, cmd.Stderr, cmd.Env, cmd.Dir = log, log, c.Env, c.Dir
	cmd.SysProcAttr = childAttributes()
	t.Do(func() { err = cmd.Start() })
	if err != nil {
		return nil, fmt.Errorf("process: %s: %w", c.Name, err)
	}
	p := &Process{command: c, logFrom: logFrom, cmd: cmd, started: time.Now(), exited: make(chan struct{})}
	go p.wait()
	return p, nil
}

func (p *Process) wait() {
	defer close(p.exited)
	_ = p.cmd.Wait()
	p.ended = time.Now()
	// What it has started ends with it, as under a service manager.
	killGroup(p.cmd.Process.Pid)
}

// Pid is its process id, also after it has ended.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Started is when it was started.
func (p *Process) Started() time.Time { return p.started }

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Alive reports whether the process has not ended; a paused process is alive.
func (p *Process) Alive() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Exit is how a process has ended.
type Exit struct {
	// At is when the end was noticed.
	At time.Time
	// Code is the exit status; -1 if a signal ended it.
	Code int
	// Text says the same in words, such as "exit status 70" or "signal: killed".
	Text string
}

// Wait returns how the process has ended, or an error when ctx ends first.
func (p *Process) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-p.exited:
		state := p.cmd.ProcessState
		return Exit{At: p.ended, Code: state.ExitCode(), Text: state.String()}, nil
	case <-ctx.Done():
		return Exit{}, fmt.Errorf("process: %s still runs: %w; its log: %s", p.command.Name, context.Cause(ctx),
			p.command.Log)
	}
}

// Kill ends the process and what it has started at once, paused or not, and returns when it is gone.
func (p *Process) Kill() {
	if p == nil {
		return
	}
	if p.Alive() {
		killGroup(p.Pid())
		_ = p.cmd.Process.Kill()
	}
	<-p.exited
}

// KillAll is Kill for a process whose children are in groups of their own, as those of PostgreSQL: on Linux
// it returns when they are gone as well.
func (p *Process) KillAll() {
	if p == nil {
		return
	}
	all := children(p.Pid())
	p.Kill()
	end(all)
}

// Pause pauses the process and returns when it is paused. Its children go on.
func (p *Process) Pause(ctx context.Context) error {
	if err := p.Signal(pauseSignal); err != nil {
		return err
	}
	// The signal is delivered some time after kill(2) returns.
	for !p.Paused() {
		if !p.Alive() {
			return ErrEnded
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("process: %s: told to pause but still running: %w", p.command.Name, context.Cause(ctx))
		case <-time.After(pollEvery):
		}
	}
	return nil
}

// Paused reports whether the process is paused.
func (p *Process) Paused() bool { return p.Alive() && isPaused(p.Pid()) }

// Resume ends Pause.
func (p *Process) Resume() error { return p.Signal(continueSignal) }

// Interrupt sends what Ctrl-C does.
func (p *Process) Interrupt() error { return p.Signal(os.Interrupt) }

// Terminate asks the process to end, as a service manager does.
func (p *Process) Terminate() error { return p.Signal(syscall.SIGTERM) }

// Signal sends any signal. It returns [ErrEnded] if the process has ended.
func (p *Process) Signal(sig os.Signal) error {
	if !p.Alive() {
		return ErrEnded
	}
	if err := p.cmd.Process.Signal(sig); err != nil {
		if errors.Is(err, os.ErrProcessDone) {
			return ErrEnded
		}
		return fmt.Errorf("process: %s: %v: %w", p.command.Name, sig, err)
	}
	return nil
}

// Name is the name of the command.
func (p *Process) Name() string { return p.command.Name }

// LogPath is the file that its output is in, with what earlier processes wrote there.
func (p *Process) LogPath() string { return p.command.Log }

// Log is what this process has written so far; empty if its file cannot be read.
func (p *Process) Log() string {
	all, err := os.ReadFile(p.command.Log)
	if err != nil || int64(len(all)) < p.logFrom {
		return ""
	}
	return string(all[p.logFrom:])
}

// LastLogLine is the last line of Log.
func (p *Process) LastLogLine() string {
	text := strings.TrimSpace(p.Log())
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// State says in words how the process has ended; empty while it runs.
func (p *Process) State() string {
	if p.Alive() {
		return ""
	}
	return p.cmd.ProcessState.String()
}

// Thread starts children. The kernel sends the parent-death signal when the *thread* that forked dies, and Go
// lets a thread die with a goroutine that locked it, which tests in network namespaces do: any other thread
// could take the children along. Its methods may be called from several goroutines.
type Thread struct {
	calls chan func()
	ended chan struct{}
}

// NewThread returns a thread like any other. Close it when its children are gone.
func NewThread() *Thread {
	t, _ := NewThreadIn(func() error { return nil })
	return t
}

// NewThreadIn returns a thread that has run enter: if enter enters a network namespace, the thread's
// children, and the sockets that [Thread.Do] opens, are there. No other goroutine ever runs on the thread: it
// ends with Close. The error is that of enter.
func NewThreadIn(enter func() error) (*Thread, error) {
	t := &Thread{calls: make(chan func()), ended: make(chan struct{})}
	entered := make(chan error)
	go t.serve(enter, entered)
	if err := <-entered; err != nil {
		<-t.ended
		return nil, err
	}
	return t, nil
}

// serve never unlocks: what enter did to the thread must not reach another goroutine.
func (t *Thread) serve(enter func() error, entered chan<- error) {
	defer close(t.ended)
	runtime.LockOSThread()
	err := enter()
	entered <- err
	if err != nil {
		return
	}
	for call := range t.calls {
		call()
	}
}

// Do runs call on the thread and waits for it. It must not be called after Close.
func (t *Thread) Do(call func()) {
	done := make(chan struct{})
	t.calls <- func() {
		defer close(done)
		call()
	}
	<-done
}

// Close ends the thread and, on Linux, its remaining children.
func (t *Thread) Close() {
	close(t.calls)
	<-t.ended
}
