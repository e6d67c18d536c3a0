package conduct

import (
	"sync/atomic"
	"time"
)

// Since is how long ago t was, by the monotonic clock or by the wall clock, whichever says longer: the monotonic one stands still while a machine is
// suspended. A wall clock that is set ahead makes it too long, which is the safe side.
func Since(t time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(t), now.Round(0).Sub(t.Round(0)))
}

// Deadline is a moment up to which something may go on. The zero Deadline has passed. It is safe for concurrent use.
type Deadline struct {
	at atomic.Pointer[time.Time]
}

// Set sets the deadline.
func (d *Deadline) Set(at time.Time) { d.at.Store(&at) }

// Passed reports whether one of the two clocks has come to the deadline.
func (d *Deadline) Passed() bool {
	at := d.at.Load()
	return at == nil || Since(*at) >= 0
}

// Time returns the deadline; zero if none was set.
func (d *Deadline) Time() time.Time {
	if at := d.at.Load(); at != nil {
		return *at
	}
	return time.Time{}
}
