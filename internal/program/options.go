package program

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Options say what is run, and for how long. Start from DefaultOptions.
type Options struct {
	// Keeper is the command line on which this executable calls Keep. What stands first is only a name.
	Keeper []string
	// Path is the program's file, Args its whole command line with its name, Env its whole environment.
	Path string
	Args []string
	Env  []string
	// StopTimeout is how long the program may take to end after it was told to. Must be positive.
	StopTimeout time.Duration
	// Until is when it must have ended. Zero: nothing is known of such a moment.
	Until time.Time
	// Notice is how long before Until it is told to end. Must not be negative.
	Notice time.Duration
	// Log is told what cannot be ended. Nil: slog.Default().
	Log *slog.Logger
}

// DefaultOptions allows 10 s for ending.
func DefaultOptions() Options { return Options{StopTimeout: 10 * time.Second} }

// Validate reports every problem at once, one line each.
func (o Options) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("program: "+format, args...))
		}
	}
	check(len(o.Keeper) > 0, "a command line for the keeper is required")
	check(o.Path != "", "a file to run is required")
	check(len(o.Args) > 0, "the arguments must begin with a name")
	check(o.StopTimeout > 0, "the stop timeout is %v: it must be more than 0s", o.StopTimeout)
	check(o.Notice >= 0, "the notice is %v: it must not be negative", o.Notice)
	return errors.Join(errs...)
}

// ErrUnsupported is wrapped by the error of Start on systems without process groups.
var ErrUnsupported = errors.New("program: this system has no process groups")

// ErrNotKeeper is wrapped by the error of Keep in a process that was not started by Start.
var ErrNotKeeper = errors.New("program: the keeper of a program is started by nobody but sbr run")

// ErrTooLate is wrapped by the error of Start when Options.Until was over before the program could be started. Nothing was started.
var ErrTooLate = errors.New("program: its time was over before it could be started")

// Status is how a program has ended: with a code, or by a signal. The zero Status is success.
type Status struct {
	Code   int `json:"code"`
	Signal int `json:"signal"`
	// Because is why it was told to end. Empty: it ended by itself.
	Because string `json:"because"`
}

// ExitCode is what a shell makes of it: the code, or 128 and the number of the signal.
func (s Status) ExitCode() int {
	if s.Signal != 0 {
		return 128 + s.Signal
	}
	return s.Code
}
