package lock

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Forever as a duration: the lock is held until it is released, whatever becomes of its holder. Use it
// wisely.
const Forever = lease.Infinite

// DefaultDuration is the duration of a lock that says nothing else.
const DefaultDuration = 5 * time.Minute

// Type says which owners may acquire and release a lock that is held already. The zero Type is SingleEntrant.
type Type uint8

// The types.
const (
	// SingleEntrant: no party acquires it while it is held, not even its owner. Only the owner releases it.
	SingleEntrant Type = iota
	// Reentrant: its owner may acquire it again, which starts the duration anew and replaces it. Only the
	// owner releases it, once, however often it was acquired.
	Reentrant
	// Overriding: an administrator's lock. It takes the lock from any owner, and releases any owner's lock.
	Overriding
)

var typeNames = [...]string{"single-entrant", "re-entrant", "overriding"}

// String returns the type in lower case.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type(%d)", t)
}

// Config says what kind of lock New makes. The zero Config is a single-entrant lock for five minutes under a
// random owner.
type Config struct {
	// Name is for messages and logs. Empty: they name no lock. A Manager fills it in.
	Name string
	// Type is SingleEntrant, Reentrant or Overriding.
	Type Type
	// Duration is how long the lock lasts where a call does not say, in whole milliseconds, or Forever. Zero:
	// DefaultDuration. Held turns false up to three eighths earlier: by an eighth for clocks that run at
	// different rates, and by OperationTimeout, at most a quarter of the duration, for requests that were
	// under way.
	Duration time.Duration
	// KeepAlive renews the lock by itself, ten times in each duration, as long as its holder lives: the
	// duration then is how long the lock outlives its holder. It also tells the holder of a loss, within a
	// tenth of the duration (Forever: within 12 s). False: the lock ends when its duration is over, finished
	// or not.
	KeepAlive bool
	// Owner is the owner id. Empty: a random one for this lock alone. ProcessOwner(): the one of this
	// process. Locks with equal ids are one owner, also across processes and lives of a process: see the
	// package's non-guarantees.
	Owner string
	// OperationTimeout bounds each step of a call that does not wait; a call has one or two. Zero: 5 s.
	OperationTimeout time.Duration
	// Clock replaces the machine's clock. Nil: lease.SystemClock.
	Clock lease.Clock
	// Logger receives warnings. Nil: silence.
	Logger *slog.Logger
}

// DefaultConfig returns the defaults, written out.
func DefaultConfig() Config {
	return Config{Duration: DefaultDuration, OperationTimeout: lease.DefaultSettings().OperationTimeout}
}

// Validate reports every problem at once, one line each. Zero fields are no problem: they have defaults.
func (c Config) Validate() error {
	var errs []error
	if int(c.Type) >= len(typeNames) {
		errs = append(errs, fmt.Errorf("type is %v: it must be SingleEntrant, Reentrant or Overriding", c.Type))
	}
	if c.Duration != 0 {
		errs = append(errs, checkDuration(c.Duration))
	}
	if c.OperationTimeout < 0 {
		errs = append(errs, fmt.Errorf("operation-timeout is %v: it must not be negative", c.OperationTimeout))
	}
	return errors.Join(errs...)
}

// checkDuration refuses what not every store can keep.
func checkDuration(d time.Duration) error {
	switch {
	case d == Forever:
		return nil
	case d < time.Millisecond:
		return fmt.Errorf("duration is %v: it must be at least 1ms", d)
	case d%time.Millisecond != 0:
		return fmt.Errorf("duration is %v: it must be whole milliseconds", d)
	}
	return nil
}

// filled is c with its zero fields replaced.
func (c Config) filled() Config {
	defaults := DefaultConfig()
	c.Duration = cmp.Or(c.Duration, defaults.Duration)
	c.OperationTimeout = cmp.Or(c.OperationTimeout, defaults.OperationTimeout)
	if c.Owner == "" {
		c.Owner = rand.Text()
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Name != "" {
		c.Logger = c.Logger.With("lock", c.Name)
	}
	return c
}

// settings are those of the lease below. Infinite: any duration that another party has recorded is believed.
func (c Config) settings() lease.Settings {
	return lease.Settings{HeartbeatTimeout: lease.Infinite, OperationTimeout: c.OperationTimeout}
}

// ProcessOwner returns an owner id that is random, and the same in the whole life of this process.
var ProcessOwner = sync.OnceValue(rand.Text)
