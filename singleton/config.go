package singleton

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/internal/handover"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/internal/slot/drive"
	"github.com/serf-sbr/serf-sbr/lease"
)

// MaxState is how many bytes a run may hand over to the next one.
const MaxState = slot.MaxState

// Config says what runs, and by which rules. Start from DefaultConfig and set Name and Run. Apart from Run
// and Endpoint all members use the same values.
type Config struct {
	// Name names the singleton: 1 to 50 of a-z, 0-9, '.', '_' and '-'. Required. It travels in a tag of each
	// member that would run it.
	Name string
	// Role: only members with this role run it. Empty: all.
	Role string
	// Run is the function. Required. It must return soon after its context has ended. If it returns by
	// itself, or panics, it is run again here after a pause that grows from RestartAfter to RestartAtMost;
	// ErrDone ends that.
	Run func(ctx context.Context, r *Run) error
	// Endpoint is where callers reach the run of this member, such as "http://10.0.0.1:8080"; a Locator tells
	// it to them. At most MaxEndpoint bytes.
	Endpoint string

	// HandOverRetryInterval is the pause between two tries to ask the others (hand-over-retry-interval).
	// Default 1 s.
	HandOverRetryInterval time.Duration
	// NumberOfRetries is how often a silent member is asked before a log line says so and, with a lease, the
	// lease decides (number-of-retries). Default 15.
	NumberOfRetries int
	// RemovalMargin is how long nothing starts after the removal of a member that may have run the singleton.
	// Zero: the provider's stable-after, as in the reference. Without a lease it should be at least twice the
	// time of detection: see `sbr explain timing`.
	RemovalMargin time.Duration
	// RestartAfter and RestartAtMost bound the pause before the function is run again where it returned by
	// itself. Default 1 s and 1 min.
	RestartAfter, RestartAtMost time.Duration
	// StopTimeout is how long a run may take to return before the log says so, again and again. Nothing can
	// end the run. Default 10 s.
	StopTimeout time.Duration

	// UseLease is the key of a lease implementation (see lease.Register): the function runs only with its own
	// lease. Empty, with Store nil: no lease.
	UseLease string
	// LeaseDecode fills the implementation's own configuration. Nil: its defaults.
	LeaseDecode func(into any) error
	// Store keeps the lease, instead of UseLease. Each member has its own.
	Store lease.Store
	// Lease are the times of the lease. The zero Settings: those of the provider.
	Lease lease.Settings
	// LeaseName is the name of the lease. Empty: "<system>-singleton-<name>".
	LeaseName string
	// LeaseRetryInterval is the pause before the lease is requested again when its holder is unknown
	// (lease-retry-interval). Default 5 s.
	LeaseRetryInterval time.Duration

	// After: without a lease, tokens are larger than this. It is for a manager that follows another manager
	// on the same member. Zero: no limit.
	After uint64

	// CompactTokens keeps tokens without a lease below 2^45 for the first 65,535 verdicts, for callers that
	// compute numbers from tokens, as package sharding does. Runs should start seldom, at most every four
	// seconds.
	CompactTokens bool

	// Logger takes the log lines. Nil: slog.Default().
	Logger *slog.Logger
	// Pause, if set, is called before each step and may block, for as long as the manager shall seem to be
	// stopped: for tests of pauses.
	Pause func()
}

// The bounds of the pause before the function is run again, and of its end.
const (
	restartAtMost = time.Minute
	stopTimeout   = 10 * time.Second
)

// DefaultConfig returns the defaults; Name and Run are missing.
func DefaultConfig() Config {
	d := slot.DefaultRules()
	return Config{
		HandOverRetryInterval: d.HandOverRetryInterval, NumberOfRetries: d.NumberOfRetries,
		LeaseRetryInterval: d.LeaseRetryInterval, RestartAfter: drive.RestartAfter,
		RestartAtMost: restartAtMost, StopTimeout: stopTimeout,
	}
}

func (c Config) withDefaults(p downing.Config) Config {
	c.settings().Fill(p)
	c.RestartAtMost = cmp.Or(c.RestartAtMost, restartAtMost)
	c.StopTimeout = cmp.Or(c.StopTimeout, stopTimeout)
	c.LeaseName = cmp.Or(c.LeaseName, p.System+"-singleton-"+c.Name)
	return c
}

// settings are those that singletons and shards have in common.
func (c *Config) settings() *drive.Settings {
	return &drive.Settings{
		Of: "singleton", HandOverRetryInterval: &c.HandOverRetryInterval, NumberOfRetries: &c.NumberOfRetries,
		RemovalMargin: &c.RemovalMargin, RestartAfter: &c.RestartAfter, LeaseRetryInterval: &c.LeaseRetryInterval,
		Lease: &c.Lease, Logger: &c.Logger, UseLease: c.UseLease, HasStore: c.Store != nil,
	}
}

// Validate reports every problem at once, one line each. Zero fields that have a default are no problem.
func (c Config) Validate() error {
	var errs []error
	if err := wire.CheckTopic(managerTopic(c.Name)); c.Name == "" || err != nil {
		errs = append(errs, fmt.Errorf("singleton: the name %q is not 1 to 50 of a-z, 0-9, '.', '_' and '-'",
			c.Name))
	}
	if c.Run == nil {
		errs = append(errs, errors.New("singleton: Run is required"))
	}
	if len(c.Endpoint) > MaxEndpoint {
		errs = append(errs, fmt.Errorf("singleton: the endpoint has %d bytes: at most %d are told", len(c.Endpoint),
			MaxEndpoint))
	}
	p := downing.DefaultConfig()
	c = c.withDefaults(p)
	errs = append(errs, c.settings().Validate(p),
		drive.NotNegative("singleton", "restart-at-most", c.RestartAtMost),
		drive.NotNegative("singleton", "stop-timeout", c.StopTimeout))
	return errors.Join(errs...)
}

// counterBits are those of a token without a lease that count runs.
func (c *Config) counterBits() int {
	if c.CompactTokens {
		return 29
	}
	return handover.DefaultCounterBits
}

// openStore opens the embedder's store; nil: there is none.
func (c *Config) openStore() func(string) (lease.Store, error) {
	if c.Store == nil {
		return nil
	}
	store := c.Store
	return func(string) (lease.Store, error) { return store, nil }
}

// Topics under which members talk about a singleton.
func managerTopic(name string) string { return "one." + name }
func locatorTopic(name string) string { return "at." + name }
