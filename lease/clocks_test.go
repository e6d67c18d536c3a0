package lease_test

import (
	"math"
	"sync"
	"time"
)

// jumpingClock is the bubble's clock plus an offset: a process that is paused wakes up later than it thinks.
type jumpingClock struct {
	mu     sync.Mutex
	offset time.Duration
}

func (c *jumpingClock) jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

func (c *jumpingClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset)
}

func (*jumpingClock) NewTimer(d time.Duration) (<-chan time.Time, func() bool) {
	t := time.NewTimer(d)
	return t.C, t.Stop
}

// driftingClock runs faster (rate > 1) or slower than the bubble's and is off by skew.
type driftingClock struct {
	begin time.Time
	skew  time.Duration
	rate  float64
}

func (c *driftingClock) Now() time.Time {
	return c.begin.Add(c.skew + time.Duration(float64(time.Since(c.begin))*c.rate))
}

func (c *driftingClock) NewTimer(d time.Duration) (<-chan time.Time, func() bool) {
	t := time.NewTimer(time.Duration(math.Ceil(float64(d)/c.rate)) + 1)
	return t.C, t.Stop
}

// freezingClock can stop the process that reads it: whoever asks for the time while it is frozen waits.
type freezingClock struct {
	driftingClock
	mu   sync.Mutex
	thaw time.Time
}

func (c *freezingClock) freeze(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.thaw = time.Now().Add(d)
}

func (c *freezingClock) frozen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Before(c.thaw)
}

func (c *freezingClock) Now() time.Time {
	for c.frozen() {
		c.mu.Lock()
		d := time.Until(c.thaw)
		c.mu.Unlock()
		time.Sleep(d)
	}
	return c.driftingClock.Now()
}
