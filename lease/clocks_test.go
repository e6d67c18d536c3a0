package lease_test

import (
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
)

// machineClock is the clock of one machine as time.Now shows it: a wall clock that can be off and can be set,
// and beside it a monotonic one that runs on at the machine's rate whatever is done to the wall clock.
type machineClock struct {
	begin time.Time
	rate  float64
	// naive leaves the monotonic reading out, as a program does that compares times it has written down.
	naive bool

	mu sync.Mutex
	// skew is how far off the wall clock is, jumped how much later it is than the timers know, thaw the end
	// of a standstill.
	skew, jumped time.Duration
	thaw         time.Time
}

func newClock(skew time.Duration, rate float64) *machineClock {
	return &machineClock{begin: time.Now(), rate: rate, skew: skew}
}

// set moves the wall clock by d, as an operator or a time server does.
func (c *machineClock) set(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skew += d
}

// jump lets the time d pass, which no timer notices: a process that is paused wakes up later than it thinks.
func (c *machineClock) jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jumped += d
}

// freeze stops the process that reads the clock: a request for the time in the next d waits.
func (c *machineClock) freeze(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.thaw = time.Now().Add(d)
}

func (c *machineClock) frozen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Before(c.thaw)
}

func (c *machineClock) Now() time.Time {
	for c.frozen() {
		c.mu.Lock()
		d := time.Until(c.thaw)
		c.mu.Unlock()
		time.Sleep(d)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	passed := c.jumped + time.Duration(float64(time.Since(c.begin))*c.rate)
	if c.naive {
		return c.begin.Add(passed + c.skew)
	}
	return reading(c.begin.Add(passed+c.skew), passed)
}

func (c *machineClock) NewTimer(d time.Duration) (<-chan time.Time, func() bool) {
	t := time.NewTimer(time.Duration(math.Ceil(float64(d)/c.rate)) + 1)
	return t.C, t.Stop
}

// reading is what time.Now returns at a wall time and a monotonic one. Package time has no function that
// makes one, and in a synctest bubble time.Now does not either. The test below says what it has to do.
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

func TestClocks_AClockThatIsSetGoesOnMonotonically(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, d := range []time.Duration{0, time.Nanosecond, time.Hour, -time.Hour, 24 * time.Hour,
			-24 * time.Hour, 10 * 365 * 24 * time.Hour} {
			c := newClock(0, 1)
			before := c.Now()
			time.Sleep(3 * time.Second)
			c.set(d)
			after := c.Now()
			require.Equal(t, 3*time.Second, after.Sub(before), "differences are monotonic")
			require.True(t, before.Before(after), "and so is order")
			require.Equal(t, 3*time.Second+d, after.Round(0).Sub(before.Round(0)), "what is written down is not")
			require.Equal(t, time.Minute, after.Add(time.Minute).Sub(after))
		}
		fast := newClock(-24*time.Hour, 1.1)
		before := fast.Now()
		time.Sleep(10 * time.Second)
		require.Equal(t, 11*time.Second, fast.Now().Sub(before))
		began := time.Now()
		fired, _ := fast.NewTimer(11 * time.Second)
		<-fired
		require.InDelta(t, 10*time.Second, time.Since(began), float64(time.Microsecond))
	})
}

const day = 24 * time.Hour

func by(clock lease.Clock) func(*lease.Settings, *lease.Options) {
	return func(_ *lease.Settings, o *lease.Options) { o.Clock = clock }
}

// The other party looks for the first time when the holder is long gone, and its clock is set while it waits:
// it waits for the whole time all the same, and not for longer.
func TestClocks_FirstSightWhileTheClockIsSet(t *testing.T) {
	for _, set := range []time.Duration{day, -day, ttl, -ttl} {
		t.Run(set.String(), func(t *testing.T) {
			story(t, func(t *testing.T, w *world) {
				crashed(w)
				time.Sleep(day)
				clock := newClock(0, 1)
				b := w.lease("b", by(clock))
				w.held(b, "a")
				time.Sleep(ttl / 2)
				clock.set(set)
				time.Sleep(ttl/2 - time.Second)
				w.held(b, "a")
				time.Sleep(2 * time.Second)
				w.granted(b)
			})
		})
	}
}

// Two machines whose clocks are wrong in ways that are promised to do no harm: off by a day, set by days
// while the lease is held, rates that differ by up to 10 %. The holder keeps the lease as long as its
// heartbeats arrive. When they do not, it knows first, and the other gets the lease after a heartbeat-timeout
// of silence by its own clock: not sooner, and not much later.
func TestClocks_OneHolderAndNoEarlyTakeover(t *testing.T) {
	type skew struct {
		off, set time.Duration // how far off the wall clock is, and how far it is set while the lease is held
		rate     float64
	}
	for name, c := range map[string]struct{ holder, other skew }{
		"in step":                     {skew{rate: 1}, skew{rate: 1}},
		"a day apart":                 {skew{off: -day, rate: 1}, skew{off: day, rate: 1}},
		"a day apart, the other way":  {skew{off: day, rate: 1}, skew{off: -day, rate: 1}},
		"holder is set forward":       {skew{set: day, rate: 1}, skew{rate: 1}},
		"holder is set back":          {skew{set: -day, rate: 1}, skew{rate: 1}},
		"other is set forward":        {skew{rate: 1}, skew{set: day, rate: 1}},
		"other is set back":           {skew{rate: 1}, skew{set: -day, rate: 1}},
		"both are set, apart":         {skew{off: day, set: -2 * day, rate: 1}, skew{off: -day, set: 2 * day, rate: 1}},
		"holder 10 % slow":            {skew{rate: 0.9}, skew{rate: 1}},
		"holder 10 % fast":            {skew{rate: 1.1}, skew{rate: 1}},
		"other 10 % slow":             {skew{rate: 1}, skew{rate: 0.9}},
		"other 10 % fast":             {skew{rate: 1}, skew{rate: 1.1}},
		"slow and behind, fast ahead": {skew{off: day, set: -2 * day, rate: slowest}, skew{off: -day, set: 2 * day, rate: fastest}},
		"fast and ahead, slow behind": {skew{off: day, set: day, rate: fastest}, skew{off: -day, set: -day, rate: slowest}},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, w *world) {
				clocks := []*machineClock{newClock(c.holder.off, c.holder.rate), newClock(c.other.off, c.other.rate)}
				a, b := w.lease("a", by(clocks[0])), w.lease("b", by(clocks[1]))
				var sign time.Time // when the last heartbeat was written, by the true clock
				w.store.OnCommit(func(r lease.Record) {
					if r.Holder == "a" {
						sign = time.Now()
					} else {
						require.False(t, a.Check(), "the holder knows first")
					}
				})
				w.granted(a)
				for second := range 3 * int(ttl/time.Second) {
					if second == int(ttl/time.Second) {
						clocks[0].set(c.holder.set)
						clocks[1].set(c.other.set)
					}
					w.held(b, "a")
					require.True(t, a.Check(), "its heartbeats arrive")
					time.Sleep(time.Second)
				}
				w.view("a").SetUnavailable(true)
				silence := time.Duration(float64(ttl) / c.other.rate)
				time.Sleep(time.Until(sign.Add(silence)))
				w.held(b, "a")
				time.Sleep(2 * time.Second)
				w.granted(b)
				require.False(t, a.Check())
			})
		})
	}
}

// A wall clock that is set back behind the last heartbeat does not make the heartbeats look like old news.
func TestClocks_HeartbeatsOfAClockThatWasSetBackCount(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		clock := newClock(day, 1)
		a, b := w.lease("a", by(clock)), w.lease("b")
		w.granted(a)
		_, stop := watching(t, b)
		last := w.record().Renewed
		clock.set(-2 * day)
		for range 5 * int(ttl/time.Second) {
			w.held(b, "a")
			time.Sleep(time.Second)
			now := w.record().Renewed
			require.False(t, now.Before(last), "the sign of life grows")
			last = now
		}
		require.True(t, a.Check())
		require.Empty(t, w.logs.All())
		_ = stop()
	})
}
