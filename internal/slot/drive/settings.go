package drive

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/lease"
)

// RestartAfter is the default pause before a function is run again that returned by itself.
const RestartAfter = time.Second

// Settings are what the configurations of singletons and of shards have in common: where each has it.
type Settings struct {
	// Of is whose settings they are, for errors.
	Of string

	HandOverRetryInterval, RemovalMargin, RestartAfter, LeaseRetryInterval *time.Duration
	NumberOfRetries                                                        *int
	Lease                                                                  *lease.Settings
	Logger                                                                 **slog.Logger

	// UseLease is the key of an implementation of the lease; HasStore: the embedder opens the stores instead.
	UseLease string
	HasStore bool
}

// duration is one of the settings. Its default counts where it is zero.
type duration struct {
	key   string
	value *time.Duration
	or    time.Duration
}

func (s *Settings) durations(p downing.Config) []duration {
	d := slot.DefaultRules()
	return []duration{
		{"hand-over-retry-interval", s.HandOverRetryInterval, d.HandOverRetryInterval},
		{"removal-margin", s.RemovalMargin, p.Resolver.StableAfter},
		{"restart-after", s.RestartAfter, RestartAfter},
		{"lease-retry-interval", s.LeaseRetryInterval, d.LeaseRetryInterval},
	}
}

// Fill gives what is zero its default under a provider.
func (s *Settings) Fill(p downing.Config) {
	for _, d := range s.durations(p) {
		if *d.value == 0 {
			*d.value = d.or
		}
	}
	if *s.NumberOfRetries == 0 {
		*s.NumberOfRetries = slot.DefaultRules().NumberOfRetries
	}
	if *s.Lease == (lease.Settings{}) {
		*s.Lease = p.Lease
	}
	if *s.Logger == nil {
		*s.Logger = slog.Default()
	}
}

// Validate reports every problem at once, one line each. What is zero is none.
func (s *Settings) Validate() error {
	var errs []error
	for _, d := range s.durations(downing.Config{}) {
		errs = append(errs, NotNegative(s.Of, d.key, *d.value))
	}
	if *s.NumberOfRetries < 0 {
		errs = append(errs, fmt.Errorf("%s: number-of-retries is %d: it must not be negative", s.Of, *s.NumberOfRetries))
	}
	if s.UseLease != "" && s.HasStore {
		errs = append(errs, fmt.Errorf("%s: use-lease and Store are both set: one is enough", s.Of))
	}
	if *s.Lease != (lease.Settings{}) {
		errs = append(errs, s.Lease.Validate())
	}
	return errors.Join(errs...)
}

// NotNegative returns an error about a duration that is.
func NotNegative(of, key string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%s: %s is %v: it must not be negative", of, key, d)
	}
	return nil
}

// Rules are those of the machines, but for who this member is. Fill comes before.
func (s *Settings) Rules(p downing.Config) slot.Rules {
	return slot.Rules{
		HandOverRetryInterval: *s.HandOverRetryInterval, NumberOfRetries: *s.NumberOfRetries,
		Margin: *s.RemovalMargin, Trust: slot.TrustFor(p.Resolver.StableAfter, *s.RemovalMargin),
		UseLease: s.UseLease != "" || s.HasStore, LeaseRetryInterval: *s.LeaseRetryInterval,
	}
}
