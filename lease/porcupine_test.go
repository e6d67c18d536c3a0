package lease_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// The histories of many clients of one lease, with faults, are checked against a model of one lease with a
// chain of verdicts. The model is in internal/linear, the clients in porcupine_crowd_test.go.

// searchTime bounds the search for an explanation of one history. To run into it is a failure.
const searchTime = time.Minute

// seeds are 1 to n, or the one in LEASE_SEED.
func seeds(t *testing.T, n uint64) (all []uint64) {
	if text := os.Getenv("LEASE_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "LEASE_SEED")
		return []uint64{seed}
	}
	for seed := range n {
		all = append(all, seed+1)
	}
	return all
}

func runs(n uint64) uint64 {
	if testing.Short() {
		return n / 20
	}
	return n
}

// explain demands that each history is one of a single lease, and that the answers named have occurred.
func explain(t *testing.T, n uint64, c crowd, want ...string) {
	total := map[string]int{}
	for _, seed := range seeds(t, runs(n)) {
		c.seed = seed
		h, o := c.run(t)
		require.NoError(t, h.Check(searchTime, linear.Artifacts(t)), "to repeat it: LEASE_SEED=%d", seed)
		require.Empty(t, o.broken, "to repeat it: LEASE_SEED=%d", seed)
		for what, n := range h.Tally() {
			total[what] += n
		}
		total["taken-over"] += o.takeovers
	}
	t.Logf("%v", total)
	if os.Getenv("LEASE_SEED") != "" {
		return // one run has not everything
	}
	require.Subset(t, slices.Collect(maps.Keys(total)), want, "what is never answered is not tested")
}

var answers = []string{
	"granted", "held", "superseded", "unknown", "refused", "late-grant", "late-free",
	"released", "not-held", "release-unknown", "read", "check-yes", "check-no",
}

func TestLinearizable_ThirtyClientsAndFaults(t *testing.T) {
	t.Parallel()
	explain(t, 1000, crowd{clients: 30, steps: 8, settings: patient, pause: 3 * time.Second}, answers...)
}

func TestLinearizable_HoldersExpire(t *testing.T) {
	t.Parallel()
	explain(t, 500, mortals, append(answers, "lost", "taken-over")...)
}

// historySettings are short, so that much happens in little virtual time. Their window is 7/8 - 1/12 of the
// timeout.
var historySettings = lease.Settings{
	HeartbeatTimeout: 12 * time.Second, HeartbeatInterval: 2 * time.Second, OperationTimeout: time.Second,
}

var mortals = crowd{clients: 10, steps: 12, settings: historySettings, pause: 4 * time.Second, mortal: true}

// The same, if differences of wall clocks decided: what is observed must break, or it checks nothing.
func TestLinearizable_WallClocksWouldBeNoticed(t *testing.T) {
	c := mortals
	c.naive = true
	for _, c.seed = range seeds(t, 200) {
		if _, o := c.run(t); len(o.broken) > 0 {
			t.Logf("noticed with seed %d: %s", c.seed, o.broken[0])
			return
		}
	}
	require.Fail(t, "it was not noticed")
}

// An observer that cannot find anything is worth nothing.
func TestLinearizable_TheObserverNotices(t *testing.T) {
	v := func(token uint64, survivors ...sbr.ID) *sbr.Verdict {
		return &sbr.Verdict{Token: token, Survivors: survivors}
	}
	for want, history := range map[string][]lease.Record{
		"the token went back":      {{Token: 1, Nonce: "a"}, {}},
		"the token jumped":         {{Token: 2}},
		"was given twice":          {{Token: 1, Nonce: "a"}, {Token: 1, Nonce: "b"}},
		`went from "a" to "b"`:     {{Token: 1, Holder: "a"}, {Token: 1, Holder: "b"}},
		"the verdict vanished":     {{Token: 1, Verdict: v(1)}, {Token: 2}},
		"verdict 2 under token 1":  {{Token: 1, Verdict: v(2)}},
		"the verdict went back":    {{Token: 1}, {Token: 2, Verdict: v(2)}, {Token: 3, Verdict: v(1)}},
		"b is back among the surv": {{Token: 1, Verdict: v(1, "a")}, {Token: 2, Verdict: v(2, "a", "b")}},
	} {
		o := &observer{}
		o.lookAtCommits(history)
		require.NotEmpty(t, o.broken, want)
		require.Contains(t, o.broken[0], want)
	}
	synctest.Test(t, func(t *testing.T) {
		store := leasetest.NewMemory()
		o, h := observe(store, historySettings), linear.New(linear.Options{})
		client, err := h.Open(0, 0, store.View("a"), historySettings, lease.Options{})
		require.NoError(t, err)
		defer client.Close()
		o.begins(client, newClock(0, 1))
		require.Equal(t, sbr.Granted, client.Acquire(t.Context(), nil))
		store.Restore(lease.Record{Holder: "x", Token: 99, Nonce: "forged"})
		require.Len(t, o.broken, 2)
		require.Contains(t, o.broken[0], "c0.0 says it holds the lease")
		require.Contains(t, o.broken[1], "of silence")
	})
}

// A checker that accepts everything is worth nothing. Each of these stores breaks its contract now and then;
// the lease cannot make up for that, and the checker must see it: not merely fail to find an explanation, but
// prove that there is none.
func TestLinearizable_ABrokenStoreIsNoticed(t *testing.T) {
	for name, how := range brokenStores {
		t.Run(name, func(t *testing.T) {
			for _, seed := range seeds(t, 20) {
				c := crowd{seed: seed, clients: 10, steps: 6, settings: patient, pause: 500 * time.Millisecond}
				c.over = func(s lease.Store, luck chance) lease.Store {
					return &broken{Store: s, luck: luck, write: how.write, cached: how.cached}
				}
				h, _ := c.run(t)
				if err := h.Check(searchTime, t.TempDir()); err != nil {
					require.ErrorContains(t, err, "linear: Illegal", "LEASE_SEED=%d", seed)
					t.Logf("noticed with seed %d", seed)
					return
				}
			}
			require.Fail(t, "it was not noticed")
		})
	}
}

// brokenStores break the contract of a Store one time out of three, each in its own way.
var brokenStores = map[string]struct {
	write  badWrite
	cached bool
}{
	"says OK to a write that conflicts": {write: func(prev, _ lease.Version, write write) (lease.Version, error) {
		got, err := write(prev)
		if errors.Is(err, lease.ErrConflict) {
			return "made up", nil
		}
		return got, err
	}},
	"says OK and writes nothing": {write: func(lease.Version, lease.Version, write) (lease.Version, error) {
		return "made up", nil
	}},
	"overwrites whatever is there": {write: func(_, present lease.Version, write write) (lease.Version, error) {
		return write(present)
	}},
	"writes, and says that it refused": {write: func(prev, _ lease.Version, write write) (lease.Version, error) {
		got, err := write(prev)
		if err == nil {
			return "", fmt.Errorf("made up: %w", lease.ErrRefused)
		}
		return got, err
	}},
	"reads from a cache": {cached: true},
}

type (
	// write is the write that was asked for, over a version.
	write func(lease.Version) (lease.Version, error)
	// badWrite does something else, with the version that was named and the one that is present.
	badWrite func(prev, present lease.Version, write write) (lease.Version, error)
)

// broken is a store that now and then writes by write, or reads from a cache.
type broken struct {
	lease.Store
	luck   chance
	write  badWrite
	cached bool

	mu    sync.Mutex
	cache lease.Snapshot
}

func (b *broken) Read(ctx context.Context) (lease.Snapshot, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cached && b.cache.Version != "" && b.luck.below(3) == 0 {
		return b.cache, nil
	}
	got, err := b.Store.Read(ctx)
	if err == nil {
		b.cache = got
	}
	return got, err
}

func (b *broken) Write(ctx context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
	if b.write == nil || b.luck.below(3) != 0 {
		return b.Store.Write(ctx, r, prev)
	}
	now, err := b.Store.Read(ctx)
	if err != nil {
		return "", err
	}
	return b.write(prev, now.Version,
		func(v lease.Version) (lease.Version, error) { return b.Store.Write(ctx, r, v) })
}
