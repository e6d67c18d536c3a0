package kubetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

const pollEvery = 20 * time.Millisecond

// process is a running child.
type process struct {
	name    string
	logPath string
	logFrom int64
	cmd     *exec.Cmd
	exited  chan struct{}
}

// startProcess starts a program whose output is appended to a log file, so that a restart keeps what came before.
func startProcess(s *spawner, name, logPath, program string, args ...string) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("kubetest: %s: log file: %w", name, err)
	}
	// The child has its own handle.
	defer func() { _ = log.Close() }()
	logFrom, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("kubetest: %s: log file: %w", name, err)
	}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttributes()
	s.do(func() { err = cmd.Start() })
	if err != nil {
		return nil, fmt.Errorf("kubetest: %s: %w; build it with: go run ./internal/kubetest/build", name, err)
	}
	p := &process{name: name, logPath: logPath, logFrom: logFrom, cmd: cmd, exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		_ = cmd.Wait()
	}()
	return p, nil
}

func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// kill ends the process at once, paused or not, and returns when it is gone. A nil or dead process is fine.
func (p *process) kill() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	<-p.exited
}

func (p *process) pause(ctx context.Context) error {
	if err := p.signal(pauseSignal); err != nil {
		return err
	}
	return p.await(ctx, func(context.Context) error {
		if !isPaused(p.cmd.Process.Pid) {
			return errors.New("told to pause but still running")
		}
		return nil
	})
}

func (p *process) resume() error { return p.signal(continueSignal) }

func (p *process) signal(sig os.Signal) error {
	if p == nil || !p.alive() {
		return errors.New("kubetest: no process to signal: it was killed or never started")
	}
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("kubetest: %s: %v: %w", p.name, sig, err)
	}
	return nil
}

// await polls check until it passes, the process dies or ctx ends.
func (p *process) await(ctx context.Context, check func(context.Context) error) error {
	return poll(ctx, func() error {
		if !p.alive() {
			return &exitError{p}
		}
		if err := check(ctx); err != nil {
			return fmt.Errorf("kubetest: %s: %w; its log: %s", p.name, err, p.logPath)
		}
		return nil
	})
}

// exitError is the death of a process that was meant to run. No amount of polling mends it.
type exitError struct{ p *process }

func (e *exitError) Error() string {
	return fmt.Sprintf("kubetest: %s ended (%v): %s; its log: %s", e.p.name, e.p.cmd.ProcessState, e.p.lastLogLine(), e.p.logPath)
}

// addressInUse tells a lost race for a port from any other death.
func (e *exitError) addressInUse() bool { return strings.Contains(e.p.log(), "address already in use") }

func (p *process) lastLogLine() string {
	text := strings.TrimSpace(p.log())
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// log is what this process wrote, without what an earlier one left in the same file.
func (p *process) log() string {
	all, err := os.ReadFile(p.logPath)
	if err != nil || int64(len(all)) < p.logFrom {
		return ""
	}
	return string(all[p.logFrom:])
}

// poll repeats try until it passes, fails for good or ctx ends; then its last word is the error.
func poll(ctx context.Context, try func() error) error {
	for {
		err := try()
		var ended *exitError
		if err == nil || errors.As(err, &ended) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", err, context.Cause(ctx))
		case <-time.After(pollEvery):
		}
	}
}
