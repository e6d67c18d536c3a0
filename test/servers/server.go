package servers

import (
	"context"
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/process"
)

// server is what all have in common: a process that is started, and asked whether it answers.
type server struct {
	*process.Process // that runs, or was the last to; nil: none was
	place            Place
	address          string
	folder           string
	command          func() (process.Command, error)
	ping             func(ctx context.Context) error
}

// Address is where it listens.
func (s *server) Address() string { return s.address }

// Launch starts the server with the data that it had, and does not wait until it answers: Healthy does.
func (s *server) Launch() error {
	c, err := s.command()
	if err != nil {
		return err
	}
	if s.Process, err = process.Start(s.place.Thread, c); err != nil {
		return fmt.Errorf("servers: %w", err)
	}
	return nil
}

const (
	// healthyWithin bounds how long a start takes on a busy machine.
	healthyWithin = 30 * time.Second
	pingTimeout   = 2 * time.Second
	pollEvery     = 10 * time.Millisecond
)

// Healthy waits until the server answers. It is an error that it has ended.
func (s *server) Healthy(ctx context.Context) error {
	for deadline := time.Now().Add(healthyWithin); ; {
		ping, cancel := context.WithTimeout(ctx, pingTimeout)
		err := s.ping(ping)
		cancel()
		switch {
		case err == nil || ctx.Err() != nil || time.Now().After(deadline):
			return err
		case !s.Alive():
			return fmt.Errorf("servers: %s ended: %s", s.Name(), s.LastLogLine())
		}
		time.Sleep(pollEvery)
	}
}

// startSomewhere starts the server at an address where nobody listens.
func (s *server) startSomewhere(ctx context.Context) (err error) {
	for range StartTries {
		if s.address, err = s.place.FreeAddress(); err != nil {
			return err
		}
		if err = s.Launch(); err != nil {
			return err
		}
		if err = s.Healthy(ctx); err == nil || ctx.Err() != nil {
			break
		}
		s.Kill()
	}
	return err
}

// Start starts the server again after Kill, and returns when it answers.
func (s *server) Start(ctx context.Context) error {
	if err := s.Launch(); err != nil {
		return err
	}
	return s.Healthy(ctx)
}

// Kill ends the server and what it has started: a process of PostgreSQL goes on to serve its client until it
// notices that the first one has ended.
func (s *server) Kill() { s.KillAll() }
