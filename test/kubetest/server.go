package kubetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/process"
)

const pollEvery = 20 * time.Millisecond

// server is one of the two programs.
type server struct{ *process.Process }

// startServer starts a program whose output is appended to a log file, so that a restart keeps what came
// before.
func startServer(t *process.Thread, name, logPath, program string, args ...string) (*server, error) {
	p, err := process.Start(t, process.Command{Name: name, Program: program, Args: args, Log: logPath})
	if err != nil {
		return nil, fmt.Errorf("kubetest: %w; build it with: go run -C test ./buildcache/build etcd kube-apiserver", err)
	}
	return &server{p}, nil
}

func (s *server) alive() bool { return s != nil && s.Alive() }

// kill ends the server at once, paused or not, and returns when it is gone. A nil or dead server is fine.
func (s *server) kill() {
	if s != nil {
		s.Kill()
	}
}

func (s *server) pause(ctx context.Context) error {
	if s == nil {
		return process.ErrEnded
	}
	return s.Pause(ctx)
}

func (s *server) resume() error {
	if s == nil {
		return process.ErrEnded
	}
	return s.Resume()
}

// await polls check until it passes, the server dies or ctx ends.
func (s *server) await(ctx context.Context, check func(context.Context) error) error {
	return poll(ctx, func() error {
		if !s.alive() {
			return &exitError{s}
		}
		if err := check(ctx); err != nil {
			return fmt.Errorf("kubetest: %s: %w; its log: %s", s.Name(), err, s.LogPath())
		}
		return nil
	})
}

// exitError is the death of a server that was meant to run. No amount of polling mends it.
type exitError struct{ s *server }

func (e *exitError) Error() string {
	return fmt.Sprintf("kubetest: %s ended (%v): %s; its log: %s", e.s.Name(), e.s.State(), e.s.LastLogLine(), e.s.LogPath())
}

// addressInUse tells a lost race for a port from any other death.
func (e *exitError) addressInUse() bool { return strings.Contains(e.s.Log(), "address already in use") }

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
