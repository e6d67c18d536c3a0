package lease_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

const day = 24 * time.Hour

// skews are the wall clocks of a holder and of another party: how far off each is, how far it is set while the lease is held,
// and at which rate it runs. The rates of any two differ by 10 % or less, which is inside the bound the package states.
var skews = map[string]struct{ holder, other skew }{
	"in step":                         {skew{}, skew{}},
	"other a day ahead":               {skew{}, skew{off: day}},
	"other a day behind":              {skew{}, skew{off: -day}},
	"holder a day ahead":              {skew{off: day}, skew{}},
	"holder a day behind":             {skew{off: -day}, skew{}},
	"a day apart, both ways":          {skew{off: -day}, skew{off: day}},
	"holder is set a day forward":     {skew{set: day}, skew{}},
	"holder is set a day back":        {skew{set: -day}, skew{}},
	"other is set a day forward":      {skew{}, skew{set: day}},
	"other is set a day back":         {skew{}, skew{set: -day}},
	"both are set, apart":             {skew{off: day, set: -2 * day}, skew{off: -day, set: 2 * day}},
	"holder is set back by a minute":  {skew{set: -time.Minute}, skew{}},
	"holder 10 % slow":                {skew{rate: 0.9}, skew{}},
	"holder 10 % fast":                {skew{rate: 1.1}, skew{}},
	"other 10 % slow":                 {skew{}, skew{rate: 0.9}},
	"other 10 % fast":                 {skew{}, skew{rate: 1.1}},
	"5 % slow against 5 % fast":       {skew{rate: 0.95}, skew{rate: 1.05}},
	"slow, behind and set back":       {skew{off: -day, set: -day, rate: 0.9}, skew{off: day, set: day}},
	"against fast, ahead and set":     {skew{off: -day, set: day}, skew{off: day, set: -day, rate: 1.1}},
	"everything at once":              {skew{off: day, set: -2 * day, rate: 0.95}, skew{off: -day, set: 2 * day, rate: 1.05}},
	"holder fast, other slow, skewed": {skew{off: day, set: day, rate: 1.05}, skew{off: -day, set: -day, rate: 0.95}},
}

type skew struct {
	off, set time.Duration
	rate     float64
}

func (s skew) clock() *machineClock {
	if s.rate == 0 {
		s.rate = 1
	}
	return newClock(s.off, s.rate)
}

func TestClocks_NoSecondHolderAndNoEarlyTakeover(t *testing.T) {
	for name, c := range skews {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDuel(t, c.holder.clock(), c.other.clock())
				d.during(ttl, func() { d.other.mustNotTake() })
				written := d.record().Renewed
				d.holder.clock.set(c.holder.set)
				d.other.clock.set(c.other.set)
				d.during(3*ttl, func() {
					d.other.mustNotTake()
					require.True(t, d.holder.Check(), "its heartbeats arrive")
				})
				if now := d.holder.clock.Now().Round(0); now.After(written) {
					written = now
				}
				require.WithinDuration(t, written, d.record().Renewed, 2*interval,
					"the record shows the holder's wall clock, which never goes back there, and that is all it does")
				d.view("holder").SetUnavailable(true)
				d.until(func() bool { return d.other.takes() })
				d.silentFor(float64(ttl)/d.other.clock.rate, float64(ttl)/d.other.clock.rate+float64(2*time.Second))
			})
		})
	}
}

// The other party looks for the first time when the holder is long gone, and its clock is set while it waits: it waits for
// the whole time all the same, and not for longer.
func TestClocks_FirstSightWhileTheClockIsSet(t *testing.T) {
	for _, set := range []time.Duration{day, -day, ttl, -ttl} {
		t.Run(set.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDuel(t, newClock(0, 1), newClock(0, 1))
				d.holder.Close()
				time.Sleep(day)
				began := time.Now()
				d.other.mustNotTake()
				time.Sleep(ttl / 2)
				d.other.clock.set(set)
				d.until(func() bool { return d.other.takes() })
				require.InDelta(t, ttl, time.Since(began), float64(2*time.Second))
			})
		})
	}
}

// A wall clock that is set back behind the last heartbeat does not make the heartbeats look like old news.
func TestClocks_HeartbeatsOfAClockThatWasSetBackCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDuel(t, newClock(day, 1), newClock(0, 1))
		_, stop := watching(t, d.other.Lease)
		last := d.record().Renewed
		d.holder.clock.set(-2 * day)
		d.during(5*ttl, func() {
			d.other.mustNotTake()
			now := d.record().Renewed
			require.False(t, now.Before(last), "the sign of life grows")
			last = now
		})
		require.True(t, d.holder.Check())
		require.Empty(t, d.logs.All())
		_ = stop()
	})
}

// duel is a holder and another party that wants the lease, under clocks of their own.
type duel struct {
	*world
	holder, other *duellist
	// sign is when the last sign of life of the holder was committed, taken when somebody else was written, by the true clock.
	sign, taken time.Time
}

type duellist struct {
	*lease.Lease
	d     *duel
	clock *machineClock
	lost  losses
}

// newDuel begins with the holder holding. From then on nobody but the holder in the record may say that it holds.
func newDuel(t *testing.T, holder, other *machineClock) *duel {
	d := &duel{world: newWorld(t)}
	join := func(name string, clock *machineClock) *duellist {
		return &duellist{d: d, clock: clock, Lease: d.lease(name, func(_ *lease.Settings, o *lease.Options) { o.Clock = clock })}
	}
	d.holder, d.other = join("holder", holder), join("other", other)
	d.store.OnCommit(func(r lease.Record) {
		switch r.Holder {
		case "holder":
			d.sign = time.Now()
		case "other":
			if d.taken.IsZero() {
				d.taken = time.Now()
				require.False(t, d.holder.Check(), "the holder believes in it while another is written")
			}
		}
	})
	require.Equal(t, sbr.Granted, d.holder.lost.follow(linear.AnswerOf(d.holder.Acquire(t.Context(), lease.Proposal{}))).Kind)
	return d
}

// during does f every second for some time.
func (d *duel) during(length time.Duration, f func()) {
	for began := time.Now(); time.Since(began) < length; time.Sleep(time.Second) {
		f()
		require.False(d.t, d.holder.Check() && d.other.Check())
	}
}

// until does f every second until it is true, which it has to become in bounded time.
func (d *duel) until(f func() bool) {
	for began := time.Now(); !f(); time.Sleep(time.Second) {
		require.False(d.t, d.holder.Check() && d.other.Check())
		require.Less(d.t, time.Since(began), 3*ttl, "locked out")
	}
	require.False(d.t, d.holder.Check())
}

func (p *duellist) mustNotTake() {
	out := linear.AnswerOf(p.Acquire(p.d.t.Context(), lease.Proposal{}))
	require.Equal(p.d.t, sbr.Held, out.Kind, "%v", out)
	require.Equal(p.d.t, "holder", out.Record.Holder)
}

func (p *duellist) takes() bool {
	return linear.AnswerOf(p.Acquire(p.d.t.Context(), lease.Proposal{})).Kind == sbr.Granted && p.Check()
}

// silentFor demands that the holder was silent for that long, by the true clock, when it was replaced; that it had known
// before; and that it was told once.
func (d *duel) silentFor(least, most float64) {
	d.t.Helper()
	silent := d.taken.Sub(d.sign)
	require.GreaterOrEqual(d.t, silent, time.Duration(least), "taken over too early")
	require.LessOrEqual(d.t, silent, time.Duration(most), "taken over too late")
	synctest.Wait()
	require.Len(d.t, d.holder.lost.all(), 1)
	require.ErrorIs(d.t, d.holder.lost.all()[0], lease.ErrLost)
	require.True(d.t, d.holder.lost.at[0].Before(d.taken), "the holder knew before")
}
