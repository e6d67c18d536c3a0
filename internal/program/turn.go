package program

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"
)

// ErrElsewhere is returned by Guard.Next when the work is done elsewhere and there is nothing to wait for.
var ErrElsewhere = errors.New("it is done elsewhere")

// Guard gives turns, one at a time. It is used by one goroutine.
type Guard interface {
	// Next waits for a turn. The error is ctx's cause, wraps ErrElsewhere, or says why waiting is futile. A turn that was given by then is returned although ctx has
	// ended.
	Next(ctx context.Context) (*Turn, error)
	// Done gives the turn back: nothing of the program is left. It returns within a bound of its own, also when it could not be given back.
	Done(t *Turn, e End)
}

// Leaver is a Guard that can look for a successor before a program that was told to leave by a signal is stopped.
type Leaver interface {
	// Leave asks for that, and returns at once. Turn.Stop must end within a bound. It is called from the goroutine that uses the Guard.
	Leave(t *Turn)
}

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
	// Signals are for the program. SIGINT and SIGTERM end Run as well, and so do SIGHUP and SIGQUIT while no program runs. Never closed.
	Signals <-chan os.Signal
	// Once: a program that had to be stopped is not waited for again.
	Once bool
	// HoldFor is for how long, from the start of the program, a turn is kept although the program has ended.
	HoldFor time.Duration
	// Log takes what happens. Nil: slog.Default().
	Log *slog.Logger
}
