package lease_test

import (
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
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

// wallClock is the clock of one machine as time.Now shows it: a wall clock that can be off and can be set, and beside it a
// monotonic one that runs on at the machine's rate whatever is done to the wall clock.
type wallClock struct {
	begin time.Time
	rate  float64
	// naive leaves the monotonic reading out, as a program does that compares times it has written down.
	naive bool

	mu   sync.Mutex
	skew time.Duration
}

func newWallClock(skew time.Duration, rate float64) *wallClock {
	return &wallClock{begin: time.Now(), rate: rate, skew: skew}
}

// set moves the wall clock by d, as an operator or a time server does.
func (c *wallClock) set(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skew += d
}

func (c *wallClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	passed := time.Duration(float64(time.Since(c.begin)) * c.rate)
	if c.naive {
		return c.begin.Add(passed + c.skew)
	}
	return reading(c.begin.Add(passed+c.skew), passed)
}

func (c *wallClock) NewTimer(d time.Duration) (<-chan time.Time, func() bool) {
	t := time.NewTimer(time.Duration(math.Ceil(float64(d)/c.rate)) + 1)
	return t.C, t.Stop
}

// reading is what time.Now returns at a wall time and a monotonic one. Package time has no function that makes one, and in a
// synctest bubble time.Now does not either. The test below says what it has to do.
func reading(wall time.Time, monotonic time.Duration) time.Time {
	t := wall.Round(0)
	inside := (*struct {
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&t))
	since1885 := uint64(t.Unix() - time.Date(1885, 1, 1, 0, 0, 0, 0, time.UTC).Unix())
	inside.wall, inside.ext = 1<<63|since1885<<30|uint64(t.Nanosecond()), int64(monotonic)
	return t
}

func TestClocks_AWallClockThatIsSetLeavesTheMonotonicOneAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, d := range []time.Duration{0, time.Nanosecond, time.Hour, -time.Hour, 24 * time.Hour, -24 * time.Hour, 10 * 365 * 24 * time.Hour} {
			c := newWallClock(0, 1)
			before := c.Now()
			time.Sleep(3 * time.Second)
			c.set(d)
			after := c.Now()
			require.Equal(t, 3*time.Second, after.Sub(before), "differences are monotonic")
			require.True(t, before.Before(after), "and so is order")
			require.Equal(t, 3*time.Second+d, after.Round(0).Sub(before.Round(0)), "what is written down is not")
			require.Equal(t, time.Minute, after.Add(time.Minute).Sub(after))
		}
		fast := newWallClock(-24*time.Hour, 1.1)
		before := fast.Now()
		time.Sleep(10 * time.Second)
		require.Equal(t, 11*time.Second, fast.Now().Sub(before))
		began := time.Now()
		fired, _ := fast.NewTimer(11 * time.Second)
		<-fired
		require.InDelta(t, 10*time.Second, time.Since(began), float64(time.Microsecond))
	})
}
