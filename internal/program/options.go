package program

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"
)

// Options say what is run, and for how long. Start from DefaultOptions.
type Options struct {
	// Supervisor is the command line on which this executable calls Supervise. What stands first is only a
	// name.
	Supervisor []string
	// Path is the program's file, Args its whole command line with its name, Env its whole environment.
	Path string
	Args []string
	Env  []string
	// StopTimeout is how long the program may take to end after it was told to.
	StopTimeout time.Duration
	// Until is when it must have ended. Zero: nothing is known of such a moment.
	Until time.Time
	// Notice is how long before Until it is told to end.
	Notice time.Duration
	// Orphaned is the command line of this executable that the supervisor runs when the process that called
	// Start has ended before the program: nothing of that one is left by then. Empty: it does nothing more.
	Orphaned []string
	// Log is told what cannot be ended. Nil: slog.Default().
	Log *slog.Logger
}

// DefaultOptions allows 10 s for ending.
func DefaultOptions() Options { return Options{StopTimeout: 10 * time.Second} }

// ErrUnsupported is wrapped by the error of Start on systems without process groups.
var ErrUnsupported = errors.New("program: this system has no process groups")

// ErrNotSupervisor is wrapped by the error of Supervise in a process that was not started by Start.
var ErrNotSupervisor = errors.New("program: the supervisor of a program is started by nobody but sbr run")

// ErrTooLate is wrapped by the error of Start when the program would have been told to end at once, by
// Options.Until and Options.Notice. Nothing was started.
var ErrTooLate = errors.New("program: its time was nearly over before it could be started")

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

// ErrElsewhere is returned by a Guard when the work is done elsewhere and there is nothing to wait for.
var ErrElsewhere = errors.New("it is done elsewhere")

// Guard waits for a turn; there is one at a time. It is called by one goroutine. The error is ctx's cause,
// wraps ErrElsewhere, or says why waiting is futile. A turn that was given by then is returned although ctx
// has ended.
type Guard func(ctx context.Context) (*Turn, error)

// Turn is a time in which the program may run.
type Turn struct {
	// Token is its fencing token: larger than that of any turn before, of whomever.
	Token uint64
	// Facts are for the environment of the program, as KEY=value.
	Facts []string
	// Stop ends, with a cause, when the program is to end in peace; Over when nothing of it may run any more.
	Stop, Over context.Context
	// Valid returns until when the turn is certain, as known now. Zero: until Over ends. It never blocks.
	Valid func() time.Time
	// Notice is how long before that moment the program is told to end.
	Notice time.Duration
	// Orphaned is Options.Orphaned: it gives the turn back where nobody is left to call Done.
	Orphaned []string
	// Leave looks for a successor before a program that was told to leave by a signal is stopped. It returns
	// at once; Stop must end within a bound. Nil: there is none to look for.
	Leave func()
	// Done gives the turn back: nothing of the program is left. It returns within a bound of its own, also
	// when it could not be given back. It is called, as Leave is, by the goroutine that calls the Guard.
	Done func(End)
}

// End says how a turn has ended.
type End struct {
	// Status is how the program has ended; zero when there was none.
	Status Status
	// Again: the next turn is waited for. Otherwise Run ends.
	Again bool
	// Why is one line.
	Why string
}

// RunOptions are the settings of Run.
type RunOptions struct {
	// Guard gives the turns.
	Guard Guard
	// Program is what runs in them. Its Env is completed by Turn.Facts; Until and Notice are the turn's.
	Program Options
	// Signals are for the program. SIGINT and SIGTERM end Run as well, and so do SIGHUP and SIGQUIT while no
	// program runs. Never closed.
	Signals <-chan os.Signal
	// Once: a program that had to be stopped is not waited for again.
	Once bool
	// HoldFor is for how long, from the start of the program, a turn is kept although the program has ended.
	HoldFor time.Duration
	// Log takes what happens. Nil: slog.Default().
	Log *slog.Logger
}
