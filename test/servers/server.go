package servers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
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

// Place is where servers run, for instance a network namespace.
type Place struct {
	// Address is the IP address that they listen at.
	Address string
	// Thread starts them, and finds out which ports are free: it is in that place. Servers leave it alone.
	Thread *process.Thread
	// Dial connects to that place.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Loopback is the place on loopback, with a thread of its own, which is the caller's to close.
func Loopback() Place {
	return Place{Address: "127.0.0.1", Thread: process.NewThread(), Dial: new(net.Dialer).DialContext}
}

// Ports are taken from below the ephemeral range: while a killed server is away, an outgoing connection of
// anybody could take an ephemeral port for its own end, and the server could not come back.
const (
	firstPort = 20000
	portCount = 10000
	portTries = 100
)

// StartTries is how often a server is started whose port somebody else took.
const StartTries = 5

// FreeAddress finds an address where nobody listens. Somebody may still take it before its user does: see
// StartTries.
func (p Place) FreeAddress() (string, error) {
	for range portTries {
		address := net.JoinHostPort(p.Address, strconv.Itoa(firstPort+rand.IntN(portCount)))
		var listener net.Listener
		var err error
		p.Thread.Do(func() { listener, err = net.Listen("tcp", address) })
		if err != nil {
			continue
		}
		return address, listener.Close()
	}
	return "", fmt.Errorf("servers: no free port among %d tried in %d-%d; end what listens there",
		portTries, firstPort, firstPort+portCount-1)
}
