package attach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/program"
	"github.com/serf-sbr/serf-sbr/internal/slot/drive"
	"github.com/serf-sbr/serf-sbr/singleton"
)

// turn is a run that the agent has started.
type turn struct {
	program.Turn

	run   uint64
	start Start
	dir   string      // holds the states
	bound *time.Timer // of a hand-over; nil: none

	cancelStop, cancelOver context.CancelCauseFunc

	until drive.Deadline
}

// newTurn returns the turn of a run. answered is when the newest ping that the agent had answered before the
// start was sent.
func newTurn(s *Start, answered time.Time) *turn {
	t := &turn{run: s.Run, start: *s}
	t.until.Set(answered.Add(time.Duration(s.ValidFor)))
	t.Token, t.Notice, t.Valid = s.Token, time.Duration(s.Notice), t.until.Time
	t.Stop, t.cancelStop = context.WithCancelCause(context.Background())
	t.Over, t.cancelOver = context.WithCancelCause(context.Background())
	return t
}

// tell asks the run to end; now: at once.
func (t *turn) tell(why error, now bool) {
	if now {
		t.cancelOver(why)
	}
	t.cancelStop(why)
}

// over frees the resources of the turn.
func (t *turn) over() {
	if t.bound != nil {
		t.bound.Stop()
	}
	t.cancelStop(nil)
	t.cancelOver(nil)
	if t.dir != "" {
		_ = os.RemoveAll(t.dir) // it is in the folder for what may be left behind
	}
}

// Files in which the program finds the state of the last run, and leaves the state for the next run.
const (
	stateFile     = "state"
	nextStateFile = "state-next"
)

// prepare writes the files for the program, in a folder beside the lock, which is held. Folders of processes
// that were killed are removed: they held the lock before.
func (t *turn) prepare(lock, name string, a *Attached) (err error) {
	left, _ := filepath.Glob(lock + ".*") // of a path that is no pattern: none
	for _, dir := range left {
		_ = os.RemoveAll(dir) // what cannot be removed is in nobody's way
	}
	if t.dir, err = os.MkdirTemp(filepath.Dir(lock), filepath.Base(lock)+"."); err != nil {
		return fmt.Errorf("no place for the state of the run before: %w", err)
	}
	state := filepath.Join(t.dir, stateFile)
	if err := os.WriteFile(state, t.start.State, 0o600); err != nil {
		return fmt.Errorf("no place for the state of the run before: %w", err)
	}
	t.Facts = []string{
		"SBR_TOKEN=" + strconv.FormatUint(t.Token, 10), "SBR_SINGLETON=" + name, "SBR_SYSTEM=" + a.System, "SBR_MEMBER=" + a.Member,
		"SBR_INCARNATION=" + a.Incarnation, "SBR_FROM=" + t.start.From, "SBR_STATE=" + state, "SBR_STATE_NEXT=" + filepath.Join(t.dir, nextStateFile),
	}
	return nil
}

// left is the state that the program leaves for the next run; nil if it leaves none.
func (t *turn) left() ([]byte, error) {
	path := filepath.Join(t.dir, nextStateFile)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > singleton.MaxState:
		return nil, fmt.Errorf("SBR_STATE_NEXT has %d bytes: a file of at most %d bytes can be handed over",
			info.Size(), singleton.MaxState)
	}
	return os.ReadFile(path)
}
