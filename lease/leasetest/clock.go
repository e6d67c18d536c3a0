package leasetest

import (
	"slices"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
)

var _ lease.Clock = (*Clock)(nil)

// Clock is a clock that stops until Advance moves it. It is safe for concurrent use.
type Clock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*clockTimer
}

type clockTimer struct {
	at    time.Time
	fired chan time.Time
}

// NewClock returns a clock that shows a fixed time.
func NewClock() *Clock { return &Clock{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)} }

// Now implements lease.Clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// NewTimer implements lease.Clock.
func (c *Clock) NewTimer(d time.Duration) (<-chan time.Time, func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &clockTimer{at: c.now.Add(d), fired: make(chan time.Time, 1)}
	if d <= 0 {
		t.fired <- c.now
		return t.fired, func() bool { return false }
	}
	c.timers = append(c.timers, t)
	return t.fired, func() bool { return c.remove(t) }
}

func (c *Clock) remove(t *clockTimer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.timers, t)
	if i >= 0 {
		c.timers = slices.Delete(c.timers, i, i+1)
	}
	return i >= 0
}

// Advance moves the clock on by d and fires what is due, earliest first. Goroutines that waited run on their
// own afterwards.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	slices.SortStableFunc(c.timers, func(a, b *clockTimer) int { return a.at.Compare(b.at) })
	for len(c.timers) > 0 && !c.timers[0].at.After(c.now) {
		c.timers[0].fired <- c.now
		c.timers = c.timers[1:]
	}
}
