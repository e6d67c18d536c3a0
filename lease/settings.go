package lease

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"
)

// Infinite as Settings.HeartbeatTimeout: a holder stays the holder until it releases or an operator frees the
// lease.
const Infinite time.Duration = math.MaxInt64

// minHeartbeatInterval is the floor of the computed heartbeat interval; an explicit one may be shorter.
const minHeartbeatInterval = 5 * time.Second

// Settings are the times of a lease. Every party of one lease must use the same HeartbeatTimeout: each judges
// by its own. Start from DefaultSettings; the zero Settings does not validate.
type Settings struct {
	// HeartbeatTimeout is how long a holder that gives no sign of life stays the holder. Must be positive, or
	// Infinite.
	HeartbeatTimeout time.Duration
	// HeartbeatInterval is the time between two heartbeats. Zero: a tenth of HeartbeatTimeout, at least 5 s.
	// Must be less than half of HeartbeatTimeout.
	HeartbeatInterval time.Duration
	// OperationTimeout bounds each Acquire, Release and Read. Must be positive.
	OperationTimeout time.Duration
}

// DefaultSettings returns the reference's defaults: 120 s, computed (12 s), 5 s.
func DefaultSettings() Settings {
	return Settings{HeartbeatTimeout: 120 * time.Second, OperationTimeout: 5 * time.Second}
}

// Or returns s with its zero fields taken from defaults.
func (s Settings) Or(defaults Settings) Settings {
	if s.HeartbeatInterval == 0 && s.HeartbeatTimeout == 0 {
		s.HeartbeatInterval = defaults.HeartbeatInterval
	}
	s.HeartbeatTimeout = cmp.Or(s.HeartbeatTimeout, defaults.HeartbeatTimeout)
	s.OperationTimeout = cmp.Or(s.OperationTimeout, defaults.OperationTimeout)
	return s
}

// Validate reports every problem at once, one line each.
func (s Settings) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(s.HeartbeatTimeout > 0, "heartbeat-timeout is %v: it must be more than 0s", s.HeartbeatTimeout)
	check(s.HeartbeatInterval >= 0, "heartbeat-interval is %v: it must not be negative", s.HeartbeatInterval)
	check(s.OperationTimeout > 0, "lease-operation-timeout is %v: it must be more than 0s", s.OperationTimeout)
	if s.HeartbeatTimeout > 0 && s.HeartbeatInterval >= 0 {
		check(s.Interval() < s.HeartbeatTimeout/2,
			"heartbeat-interval is %v: it must be less than half of heartbeat-timeout (%v)",
			s.Interval(), s.HeartbeatTimeout)
	}
	return errors.Join(errs...)
}

// Interval is the heartbeat interval in effect.
func (s Settings) Interval() time.Duration {
	switch {
	case s.HeartbeatInterval != 0:
		return s.HeartbeatInterval
	case s.HeartbeatTimeout == Infinite:
		return DefaultSettings().Interval()
	default:
		return max(minHeartbeatInterval, s.HeartbeatTimeout/10)
	}
}

// Window is how long a holder trusts one heartbeat, counted from the moment it was sent. It ends before
// another party may take over: OperationTimeout (at most a quarter of HeartbeatTimeout) is left for a
// party that is told late, and an eighth of HeartbeatTimeout for clocks that run at different rates. So it is
// always longer than the heartbeat interval.
func (s Settings) Window() time.Duration {
	if s.HeartbeatTimeout == Infinite {
		return Infinite
	}
	return s.HeartbeatTimeout - s.HeartbeatTimeout/8 - min(s.OperationTimeout, s.HeartbeatTimeout/4)
}

// requestTime is how long one request may take of an operation that has so much time left: all of it but for
// a tenth, so that a slow store is not taken for an unreachable one. If no answer comes, the tenth is for
// finding out what became of it.
func (s Settings) requestTime(left time.Duration) time.Duration {
	return max(min(left, s.OperationTimeout)*9/10, time.Millisecond)
}

// patience is how long a foreign holder must be silent before it may be replaced. The record's own word is
// capped by the local setting, so that a poisoned record cannot lock all parties out.
func (s Settings) patience(recorded time.Duration) time.Duration {
	if recorded <= 0 {
		return s.HeartbeatTimeout
	}
	return min(recorded, s.HeartbeatTimeout)
}
