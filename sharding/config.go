package sharding

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/internal/slot/drive"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sharding/allocation"
	"github.com/serf-sbr/serf-sbr/singleton"
)

// MaxShards is how many shards a type may have, MaxState how many bytes a run may hand over.
const (
	MaxShards = message.MaxShards
	MaxState  = message.MaxState
)

// Config says what runs, and by which rules. Start from DefaultConfig and set Type, Shards and Run. Apart
// from Run and Endpoint all members use the same values.
type Config struct {
	// Type names the shards: 1 to 40 of a-z, 0-9, '.', '_' and '-'. Required.
	Type string
	// Shards are the names of the shards, in any order, at most MaxShards. Required.
	Shards []string
	// Role: only members with this role run shards. Empty: all.
	Role string
	// Run runs one shard. It must return soon after its context has ended. If it returns by itself, or
	// panics, it is run again here after RestartAfter. Nil: this member runs no shards but knows their
	// owners, to send requests to them.
	Run func(ctx context.Context, s *Shard) error
	// Endpoint is where callers reach the shards that run on this member, such as "http://10.0.0.1:8080";
	// Owner returns it to callers. At most singleton.MaxEndpoint bytes. Empty: callers must know it
	// themselves.
	Endpoint string

	// LoadFactor bounds how many shards a member has: this many times its equal share, rounded up. Default
	// 1.25.
	LoadFactor float64
	// MaxMoves is how many shards that run well may move at once for the sake of balance. Default 1;
	// negative: none.
	MaxMoves int
	// MaxRecoveries is how many shards of members that leave or are gone may move at once. Default 100.
	MaxRecoveries int
	// Target says which member each shard should be on, in place of rendezvous hashing and LoadFactor;
	// MaxMoves and MaxRecoveries hold all the same. All members use the same Target. Nil: rendezvous hashing.
	Target allocation.Target

	// HandOverRetryInterval, NumberOfRetries and RemovalMargin are as those of a singleton.
	HandOverRetryInterval time.Duration
	NumberOfRetries       int
	RemovalMargin         time.Duration
	// RestartAfter is the pause before a shard whose function returned by itself is run again. Default 1 s.
	RestartAfter time.Duration

	// UseLease is the key of a lease implementation: each shard runs only with its lease, and the coordinator
	// with its own. Empty, with Store nil: no leases.
	UseLease string
	// LeaseDecode fills the implementation's own configuration. Nil: its defaults.
	LeaseDecode func(into any) error
	// Store opens the store of the lease of a name, instead of UseLease.
	Store func(name string) (lease.Store, error)
	// Lease are the times of the leases. The zero Settings: those of the provider.
	Lease lease.Settings
	// LeaseRetryInterval is the pause before a lease is asked for again. Default 5 s.
	LeaseRetryInterval time.Duration

	// Logger takes the log lines. Nil: slog.Default().
	Logger *slog.Logger
	// Pause, if set, is called before each step and may block, for as long as the manager shall seem to be
	// stopped: for tests of pauses.
	Pause func()
}

// DefaultConfig returns the defaults; Type and Shards are missing, and Run where shards shall run.
func DefaultConfig() Config {
	a, s := allocation.DefaultConfig(), slot.DefaultRules()
	return Config{
		LoadFactor: a.LoadFactor, MaxMoves: a.MaxMoves, MaxRecoveries: a.MaxRecoveries,
		HandOverRetryInterval: s.HandOverRetryInterval, NumberOfRetries: s.NumberOfRetries,
		RestartAfter: drive.RestartAfter, LeaseRetryInterval: s.LeaseRetryInterval,
	}
}

// Numbered returns the names "0" to "n-1".
func Numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	return names
}

func (c Config) withDefaults(p downing.Config) Config {
	c.settings().Fill(p)
	d := DefaultConfig()
	c.MaxMoves = cmp.Or(c.MaxMoves, d.MaxMoves)
	c.MaxRecoveries = cmp.Or(c.MaxRecoveries, d.MaxRecoveries)
	c.LoadFactor = cmp.Or(c.LoadFactor, d.LoadFactor)
	c.Shards = slices.Sorted(slices.Values(c.Shards))
	return c
}

func (c *Config) allocation() allocation.Config {
	return allocation.Config{
		LoadFactor: c.LoadFactor, MaxMoves: max(c.MaxMoves, 0), MaxRecoveries: c.MaxRecoveries, Target: c.Target,
	}
}

// settings are those that singletons and shards have in common.
func (c *Config) settings() *drive.Settings {
	return &drive.Settings{
		Of: "sharding", HandOverRetryInterval: &c.HandOverRetryInterval, NumberOfRetries: &c.NumberOfRetries,
		RemovalMargin: &c.RemovalMargin, RestartAfter: &c.RestartAfter, LeaseRetryInterval: &c.LeaseRetryInterval,
		Lease: &c.Lease, Logger: &c.Logger, UseLease: c.UseLease, HasStore: c.Store != nil,
	}
}

// Validate reports every problem at once, one line each. Zero fields that have a default are no problem.
func (c Config) Validate() error {
	var errs []error
	if err := wire.CheckTopic(topic(c.Type)); c.Type == "" || len(c.Type) > maxType || err != nil {
		errs = append(errs, fmt.Errorf("sharding: the type %q is not 1 to %d of a-z, 0-9, '.', '_' and '-'",
			c.Type, maxType))
	}
	if len(c.Endpoint) > singleton.MaxEndpoint {
		errs = append(errs, fmt.Errorf("sharding: the endpoint has %d bytes: at most %d are told",
			len(c.Endpoint), singleton.MaxEndpoint))
	}
	if len(c.Shards) > MaxShards {
		errs = append(errs, fmt.Errorf("sharding: there are %d shards: there may be %d", len(c.Shards), MaxShards))
	}
	p := downing.DefaultConfig()
	c = c.withDefaults(p)
	_, err := allocation.New(c.Type, c.Shards, c.allocation())
	return errors.Join(append(errs, err, c.settings().Validate(p))...)
}

// maxType keeps the coordinator's name, a singleton's, within its limit.
const maxType = 40

// topic is for messages about the shards of a type, coordinatorName names the coordinator's singleton.
func topic(kind string) string           { return "shards." + kind }
func coordinatorName(kind string) string { return "shards." + kind }

// locatorTopic is for the locations of a type's shards. Locations name shards by their places in the list:
// managers with different lists do not hear each other.
func locatorTopic(kind string, shards []string) string {
	return fmt.Sprintf("where.%s.%08x", kind, uint32(message.Digest(kind, shards, false)))
}
