package leasetest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// fates plays reads and writes and says what became of each.
func fates(t *testing.T, seed uint64, p float64, readsToo bool) (out []string, f *leasetest.Faulty) {
	f = leasetest.NewFaulty(leasetest.NewMemory().View("a"))
	defer f.Close()
	f.Randomly(seed, p, 100*time.Millisecond)
	for range 200 {
		if readsToo {
			within(t, func(ctx context.Context) { _, _ = f.Read(ctx) })
		}
		took := within(t, func(ctx context.Context) {
			_, err := f.Write(ctx, mine, "no such version")
			out = append(out, fmt.Sprint(err))
		})
		out[len(out)-1] += took.String()
	}
	return out, f
}

func TestFaulty_RandomlyIsReproducible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, f := fates(t, 7, 0.5, true)
		again, _ := fates(t, 7, 0.5, false)
		assert.Equal(t, first, again, "whatever else is asked between")
		other, _ := fates(t, 8, 0.5, true)
		assert.NotEqual(t, first, other)
		total := 0
		for fault := leasetest.Unavailable; fault <= leasetest.Slow; fault++ {
			assert.NotZero(t, f.Injected(fault), "%v", fault)
			total += f.Injected(fault)
		}
		assert.InDelta(t, 200, total, 50, "half of 400")
		_, f = fates(t, 7, 0, true)
		for fault := leasetest.Unavailable; fault <= leasetest.Slow; fault++ {
			assert.Zero(t, f.Injected(fault))
		}
	})
}

// The two leases fight over one record through bad connections. Never do both believe that they hold it; once the
// connections are good again, one of them gets it.
func TestFaulty_TwoLeasesNeverBothHold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seeds := [2]uint64{rapid.Uint64().Draw(rt, "a"), rapid.Uint64().Draw(rt, "b")}
		p := rapid.SampledFrom([]float64{0.02, 0.2, 0.5, 0.9}).Draw(rt, "p")
		longest := time.Duration(rapid.IntRange(0, 60).Draw(rt, "longest")) * time.Second
		both, healed, held := false, true, 0
		synctest.Test(t, func(t *testing.T) { both, healed, held = fight(t, seeds, p, longest, timeout) })
		if both || !healed || (p < 0.1 && held == 0) {
			rt.Fatalf("both hold: %v, after healing one holds: %v, held %d times", both, healed, held)
		}
	})
}

// A check that cannot fail is worth nothing: a party that takes over after less than the holder's time must be noticed.
func TestFaulty_TwoLeasesThatDisagreeAreNoticed(t *testing.T) {
	noticed := 0
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			if both, _, _ := fight(t, [2]uint64{seed, seed + 100}, 0.5, time.Minute, timeout/4); both {
				noticed++
			}
		})
	}
	assert.NotZero(t, noticed)
}

const timeout = 20 * time.Second

// fight runs it; patience is the second party's heartbeat-timeout.
func fight(t *testing.T, seeds [2]uint64, p float64, longest, patience time.Duration) (both, healed bool, held int) {
	settings := lease.Settings{HeartbeatTimeout: timeout, HeartbeatInterval: 2 * time.Second, OperationTimeout: 2 * time.Second}
	inner := leasetest.NewMemory()
	var faulty [2]*leasetest.Faulty
	var leases [2]*lease.Lease
	for i, name := range []string{"a", "b"} {
		faulty[i] = leasetest.NewFaulty(inner.View(name))
		faulty[i].Randomly(seeds[i], p, longest)
		l, err := lease.New(faulty[i], name, settings, lease.Options{})
		require.NoError(t, err)
		leases[i], settings.HeartbeatTimeout = l, patience
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i, l := range leases {
		all.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				_, _ = l.Acquire(ctx, lease.Proposal{})
				time.Sleep(time.Duration(1+n%5) * time.Second)
				if n%3 == 0 {
					_ = l.Release(ctx)
				}
			}
		})
	}
	for range 3000 {
		time.Sleep(100 * time.Millisecond)
		a, b := leases[0].Check(), leases[1].Check()
		both = both || a && b
		if a || b {
			held++
		}
	}
	cancel()
	all.Wait()
	for i := range faulty {
		faulty[i].Heal()
	}
	time.Sleep(2 * time.Minute) // what is under way arrives, what is in doubt is undone
	for i, l := range leases {
		healed = healed || linear.AnswerOf(l.Acquire(t.Context(), lease.Proposal{})).Kind == sbr.Granted
		l.Close()
		faulty[i].Close()
	}
	return both, healed, held
}
