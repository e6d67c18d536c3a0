package agentrpc

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// Errors of an Agent, besides those of downing that say why it does not answer.
var (
	// ErrNotCurrent is returned when something needs the agent's member list and the agent does not answer.
	ErrNotCurrent = errors.New("the Serf agent does not answer")
	// ErrBusy is returned when answers to queries are produced faster than the agent takes them.
	ErrBusy = errors.New("too many answers are waiting for the Serf agent")
)

// Options say how an agent is reached. Start from DefaultOptions.
type Options struct {
	// Addr is the agent's RPC address, host:port.
	Addr string
	// AuthKey is the agent's rpc_auth; empty if it has none.
	AuthKey string
	// Timeout bounds each request that an agent answers at once; an agent that does not is silent.
	Timeout time.Duration
	// Interval is the time between two readings of the members, events or not.
	Interval time.Duration
	// Logger takes the log lines. Nil: slog.Default().
	Logger *slog.Logger
}

// DefaultOptions are those of a local agent: its silence is noticed within 2 s.
func DefaultOptions() Options {
	return Options{Addr: "127.0.0.1:7373", Timeout: 1500 * time.Millisecond, Interval: 500 * time.Millisecond}
}

// Validate reports every problem at once.
func (o *Options) Validate() error {
	var errs []error
	if _, port, err := net.SplitHostPort(o.Addr); err != nil || port == "" {
		errs = append(errs, fmt.Errorf("agentrpc: the RPC address is %q: give host:port, as in 127.0.0.1:7373", o.Addr))
	}
	if o.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("agentrpc: Timeout is %v: it must be more than 0s", o.Timeout))
	}
	if o.Interval <= 0 {
		errs = append(errs, fmt.Errorf("agentrpc: Interval is %v: it must be more than 0s", o.Interval))
	}
	return errors.Join(errs...)
}
