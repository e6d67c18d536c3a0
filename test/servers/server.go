package servers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/test/process"
)

// Server is what all have in common: a process that is started, and asked whether it answers.
type Server struct {
	*process.Process // that runs, or was the last to; nil: none was
	Place            Place
	// Command is the program that listens at an address, Ping asks whether it answers.
	Command func(address string) (process.Command, error)
	Ping    func(ctx context.Context) error

	address string
}

// Address is where it listens.
func (s *Server) Address() string { return s.address }

// Launch starts the server with the data that it had, and does not wait until it answers: Healthy does.
func (s *Server) Launch() error {
	c, err := s.Command(s.address)
	if err != nil {
		return err
	}
	if s.Process, err = process.Start(s.Place.Thread, c); err != nil {
		return fmt.Errorf("servers: %w", err)
	}
	return nil
}

const (
	// healthyWithin bounds how long a start takes on a busy machine.
	healthyWithin = 90 * time.Second
	pingTimeout   = 2 * time.Second
	pollEvery     = 10 * time.Millisecond
)

// Healthy waits until the server answers. It is an error that it has ended.
func (s *Server) Healthy(ctx context.Context) error {
	for deadline := time.Now().Add(healthyWithin); ; {
		ping, cancel := context.WithTimeout(ctx, pingTimeout)
		err := s.Ping(ping)
		cancel()
		switch {
		case err == nil || ctx.Err() != nil || time.Now().After(deadline):
			return s.failed("", err)
		case !s.Alive():
			return s.failed(fmt.Sprintf(" ended (%s)", s.State()), errors.New(s.LastLogLine()))
		}
		time.Sleep(pollEvery)
	}
}

func (s *Server) failed(how string, err error) error {
	if err != nil {
		err = fmt.Errorf("servers: %s%s: %w; its log: %s", s.Name(), how, err, s.LogPath())
	}
	return err
}

// StartSomewhere starts the server at an address where nobody listens.
func (s *Server) StartSomewhere(ctx context.Context) (err error) {
	for range StartTries {
		if s.address, err = s.Place.FreeAddress(); err != nil {
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
func (s *Server) Start(ctx context.Context) error {
	if err := s.Launch(); err != nil {
		return err
	}
	return s.Healthy(ctx)
}

// Kill ends the server and what it has started: a process of PostgreSQL goes on to serve its client until it
// notices that the first one has ended.
func (s *Server) Kill() { s.KillAll() }
