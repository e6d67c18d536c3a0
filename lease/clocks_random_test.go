package lease_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
)

// Random histories under clocks that are wrong in every way that is allowed: wall clocks up to a day off in either direction,
// set again and again, rates that differ by 10 %. Parties acquire, release, are cut off, crash and come back.
//
//   - never two of them say yes at once;
//   - nobody is replaced before it has been silent for the heartbeat-timeout by the fastest clock;
//   - nobody believes in a lease while another is written as its holder.
func TestClocks_RandomHistories(t *testing.T) {
	takeovers, settings := 0, 0
	for _, seed := range seeds(t, runs(400)) {
		var c *clockRun
		synctest.Test(t, func(t *testing.T) { c = playClocks(seed, false) })
		require.Empty(t, c.broken, "to repeat it: LEASE_SEED=%d", seed)
		takeovers += c.takeovers
		settings += c.settings
	}
	t.Logf("%d takeovers, clocks set %d times", takeovers, settings)
	require.NotZero(t, takeovers)
	require.NotZero(t, settings)
}

// The same histories, if differences of wall clocks decided: what is checked above must break, or it checks nothing.
func TestClocks_WallClocksWouldBeNoticed(t *testing.T) {
	for _, seed := range seeds(t, 20) {
		var c *clockRun
		synctest.Test(t, func(t *testing.T) { c = playClocks(seed, true) })
		if len(c.broken) > 0 {
			t.Logf("noticed with seed %d: %s", seed, c.broken[0])
			return
		}
	}
	require.Fail(t, "it was not noticed")
}

const slowest, fastest = 0.95, 1.05

type clockRun struct {
	store   *leasetest.Memory
	parties []*clockParty

	mu                  sync.Mutex
	broken              []string
	takeovers, settings int
	holder              string
	sign                time.Time
}

type clockParty struct {
	name  string
	view  *leasetest.Faulty
	clock *wallClock
	live  atomic.Pointer[lease.Lease]
	lives int
}

func playClocks(seed uint64, naive bool) *clockRun {
	random := rand.New(rand.NewPCG(seed, 0))
	c := &clockRun{store: leasetest.NewMemory()}
	for i := range 4 {
		p := &clockParty{name: strconv.Itoa(i), view: c.store.View(strconv.Itoa(i))}
		p.clock = newWallClock(time.Duration(random.Int64N(int64(2*day)))-day, slowest+random.Float64()*(fastest-slowest))
		p.clock.naive = naive
		p.restart()
		c.parties = append(c.parties, p)
	}
	c.store.OnCommit(c.committed)
	var all sync.WaitGroup
	for i, p := range c.parties {
		random := rand.New(rand.NewPCG(seed, uint64(i+1)))
		all.Go(func() {
			for range 60 {
				time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
				c.step(p, random)
				c.sample()
			}
			p.live.Load().Close()
		})
	}
	all.Wait()
	return c
}

func (p *clockParty) restart() {
	if old := p.live.Load(); old != nil {
		old.Close()
	}
	p.lives++
	l, err := lease.New(p.view, fmt.Sprintf("%s.%d", p.name, p.lives), historySettings, lease.Options{Clock: p.clock})
	if err != nil {
		panic(err)
	}
	p.live.Store(l)
}

func (c *clockRun) step(p *clockParty, random *rand.Rand) {
	switch n := random.IntN(20); {
	case n < 11:
		_, _ = p.live.Load().Acquire(context.Background(), lease.Proposal{})
	case n < 12:
		_ = p.live.Load().Release(context.Background())
	case n < 16:
		p.clock.set(time.Duration(random.Int64N(int64(2*day))) - day)
		c.mu.Lock()
		c.settings++
		c.mu.Unlock()
	case n < 17:
		p.view.SetUnavailable(true)
	case n < 19:
		p.view.SetUnavailable(false)
	default:
		p.restart()
	}
}

func (c *clockRun) fail(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = append(c.broken, fmt.Sprintf(format, args...))
}

// believers are those that say that they hold the lease.
func (c *clockRun) believers() (who []string) {
	for _, p := range c.parties {
		if l := p.live.Load(); l.Check() {
			who = append(who, l.Owner())
		}
	}
	return who
}

func (c *clockRun) sample() {
	if who := c.believers(); len(who) > 1 {
		c.fail("several holders: %v", who)
	}
}

// committed sees each write at the moment at which it takes place.
func (c *clockRun) committed(r lease.Record) {
	for _, who := range c.believers() {
		if who != r.Holder {
			c.fail("%s believes that it holds the lease while %q is written", who, r.Holder)
		}
	}
	now := time.Now()
	if c.holder != "" && r.Holder != "" && r.Holder != c.holder {
		c.mu.Lock()
		c.takeovers++
		c.mu.Unlock()
		if silent, least := now.Sub(c.sign), time.Duration(float64(historySettings.HeartbeatTimeout)/fastest); silent < least {
			c.fail("%q was replaced by %q after %v of silence: less than %v", c.holder, r.Holder, silent, least)
		}
	}
	c.holder, c.sign = r.Holder, now
}
