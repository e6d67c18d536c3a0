package drive

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/lease"
)

// RestartAfter is the default pause before a function that returned by itself is run again.
const RestartAfter = time.Second

// Settings point to the settings that the configurations of singletons and of shards have in common.
type Settings struct {
	// Of names their owner, for errors.
	Of string

	HandOverRetryInterval, RemovalMargin, RestartAfter, LeaseRetryInterval *time.Duration
	NumberOfRetries                                                        *int
	Lease                                                                  *lease.Settings
	Logger                                                                 **slog.Logger

	// UseLease is the key of an implementation of the lease; HasStore: the embedder opens the stores instead.
	UseLease string
	HasStore bool
}

// Fill gives what is zero its default under a provider.
func (s *Settings) Fill(p downing.Config) {
	d := slot.DefaultRules()
	or(s.HandOverRetryInterval, d.HandOverRetryInterval)
	or(s.RemovalMargin, p.Resolver.RemovalMargin())
	or(s.RestartAfter, RestartAfter)
	or(s.LeaseRetryInterval, d.LeaseRetryInterval)
	or(s.NumberOfRetries, d.NumberOfRetries)
	or(s.Lease, p.Lease)
	or(s.Logger, slog.Default())
}

// or gives a setting that is zero its default.
func or[T comparable](v *T, d T) { *v = cmp.Or(*v, d) }

// Validate reports every problem at once, one line each. Call Fill before.
func (s *Settings) Validate(p downing.Config) error {
	rules := s.Rules(p)
	errs := []error{rules.Validate(s.Of), NotNegative(s.Of, "restart-after", *s.RestartAfter),
		s.Lease.Validate()}
	if s.UseLease != "" && s.HasStore {
		errs = append(errs, fmt.Errorf("%s: use-lease and Store are both set: one is enough", s.Of))
	}
	return errors.Join(errs...)
}

// NotNegative returns an error if a duration is negative.
func NotNegative(of, key string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%s: %s is %v: it must not be negative", of, key, d)
	}
	return nil
}

// Rules are the rules of the machines without Self. Call Fill before.
func (s *Settings) Rules(p downing.Config) slot.Rules {
	// Under stable-after: auto others may count with any cluster size, so this member uses the shortest time.
	trust := slot.TrustFor(p.Resolver.StableIn(1), *s.RemovalMargin)
	return slot.Rules{
		HandOverRetryInterval: *s.HandOverRetryInterval, NumberOfRetries: *s.NumberOfRetries,
		Margin: *s.RemovalMargin, Trust: trust,
		UseLease: s.UseLease != "" || s.HasStore, LeaseRetryInterval: *s.LeaseRetryInterval,
	}
}
