package lease_test

import (
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
	t := time.NewTimer(time.Duration(float64(d) / c.rate))
	return t.C, t.Stop
}
