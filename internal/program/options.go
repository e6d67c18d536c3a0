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
	// Supervisor is the command line on which this executable calls Supervise. The first word is only a name.
	Supervisor []string
	// Path is the program's file, Args its whole command line with its name, Env its whole environment.
	Path string
	Args []string
	Env  []string
	// StopTimeout is how long the program may take to end after it was asked to.
	StopTimeout time.Duration
	// Until is when the program must have ended. Zero: no such moment is known.
	Until time.Time `json:"-"`
	// Notice is how long before Until the program is asked to end.
	Notice time.Duration
	// Orphaned is the command line of this executable that the supervisor runs when the process that called
	// Start has ended first: nothing of the program is left by then. Empty: the supervisor runs nothing.
	Orphaned []string
	// Lock is a file from TryLock that stays locked until nothing of the program is left, also where the
	// process that called Start is killed before. Nil: none.
	Lock *os.File `json:"-"`
	// Log takes the processes that cannot be ended. Nil: slog.Default().
	Log *slog.Logger `json:"-"`
}

// DefaultOptions allows 10 s for ending.
func DefaultOptions() Options { return Options{StopTimeout: 10 * time.Second} }

// ErrUnsupported is wrapped by the error of Start on systems without process groups.
var ErrUnsupported = errors.New("program: this system has no process groups")

// ErrNotSupervisor is wrapped by the error of Supervise in a process that was not started by Start.
var ErrNotSupervisor = errors.New("program: the supervisor of a program is started by nobody but sbr run")

// ErrTooLate is wrapped by the error of Start when the program would have been asked to end at once, by
// Options.Until and Options.Notice. Nothing was started.
var ErrTooLate = errors.New("program: its time was nearly over before it could be started")

// Status is how a program has ended: with a code, or by a signal. The zero Status is success.
type Status struct {
	Code   int `json:"code"`
	Signal int `json:"signal"`
	// Because is why the program was asked to end. Empty: it ended by itself.
	Because string `json:"because"`
}

// ExitCode is the exit status as a shell shows it: the code, or 128 and the number of the signal.
func (s Status) ExitCode() int {
	if s.Signal != 0 {
		return 128 + s.Signal
	}
	return s.Code
}

// ErrElsewhere is returned by a Guard when the work is done elsewhere and waiting is not wanted.
var ErrElsewhere = errors.New("it is done elsewhere")

// Guard waits for a turn; there is one at a time. One goroutine calls it. The error is ctx's cause, wraps
// ErrElsewhere, or says why waiting is futile. A turn that was granted already is returned although ctx has
// ended.
type Guard func(ctx context.Context) (*Turn, error)

// Turn is a time in which the program may run.
type Turn struct {
	// Token is its fencing token: larger than that of any earlier turn of any process.
	Token uint64
	// Facts are for the environment of the program, as KEY=value.
	Facts []string
	// Stop ends, with a cause, when the program has to end gracefully; Over when nothing of it may run any
	// more.
	Stop, Over context.Context
	// Valid returns until when the turn is certain, as known now. Zero: until Over ends. It never blocks.
	Valid func() time.Time
	// Notice is how long before that moment the program is asked to end.
	Notice time.Duration
	// Orphaned is Options.Orphaned: it releases the turn when no process is left to call Done.
	Orphaned []string
	// Lock is Options.Lock.
	Lock *os.File
	// Leave looks for a successor before a signal stops the program. It returns at once; Stop must end within
	// a bound. Nil: there is no successor to look for.
	Leave func()
	// Done releases the turn: nothing of the program is left. It returns within a bound of its own, also when
	// the release failed. The goroutine that calls the Guard calls Done and Leave.
	Done func(End)
}

// End says how a turn has ended.
type End struct {
	// Ran says that the program was started.
	Ran bool
	// Status is how the program has ended; zero when there was none.
	Status Status
	// Again: Run waits for the next turn. Otherwise Run ends.
	Again bool
	// Why is one line.
	Why string
}

// RunOptions are the settings of Run.
type RunOptions struct {
	// Guard gives the turns.
	Guard Guard
	// Program is the program. Turn.Facts are added to its Env; Until and Notice come from the turn.
	Program Options
	// Signals are for the program. SIGINT and SIGTERM end Run as well, and so do SIGHUP and SIGQUIT while no
	// program runs. Never closed. Nil: those that this process gets.
	Signals <-chan os.Signal
	// Once: Run does not wait for another turn after it had to stop the program.
	Once bool
	// HoldFor is how long, from the start of the program, a turn is kept although the program has ended.
	HoldFor time.Duration
	// Log takes what happens. Nil: slog.Default().
	Log *slog.Logger
}
