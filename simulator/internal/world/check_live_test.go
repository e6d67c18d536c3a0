package world

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// A member that is down although nothing speaks against it breaks L1, but for a member that had no answer
// while others wrote the record.
func TestOneSideLives_WritesOfOthers(t *testing.T) {
	touch := func(w *World) { w.store.touch() }
	write := func(w *World) { w.store.commit(w.nodes[1].proc, w.store.at(), w.store.record) }
	nothing := func(*World) {}
	for name, tc := range map[string]struct {
		before, during func(w *World)
		outcome        sbr.Outcome
		broken         bool
	}{
		"nobody writes":                           {nothing, nothing, sbr.Unknown, true},
		"a member writes":                         {nothing, write, sbr.Unknown, true},
		"somebody wrote before the attempt":       {touch, nothing, sbr.Unknown, true},
		"somebody writes, and there is an answer": {nothing, touch, sbr.Held, true},
		"somebody writes, and there is none":      {nothing, touch, sbr.Unknown, false},
		"a member writes as well":                 {write, func(w *World) { write(w); touch(w) }, sbr.Unknown, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := smallest(t, 1)
			w.Run(time.Minute)
			c, p := &oneSideLives{}, w.nodes[0].proc
			w.checks = []checker{c}
			tc.before(w)
			c.stepped(w, p, []sbr.Effect{sbr.AcquireLease{Attempt: 9}})
			tc.during(w)
			c.took(w, p, sbr.LeaseAnswer{Attempt: 9, Outcome: tc.outcome})
			p.downReason = "by hand"
			c.rested(w)
			if !tc.broken {
				require.Empty(t, w.Violations())
				return
			}
			require.Len(t, w.Violations(), 1)
			require.Equal(t, "L1", w.Violations()[0].Promise)
		})
	}
}

// A non-member writes the record before each write of all members but one, and again and again: that member
// gets no write through either. Whether nobody survives then is left to chance, and is no broken promise.
func TestOneSideLives_AStormOfWritesHitsEverybody(t *testing.T) {
	const seeds = 40
	nobody := 0
	for seed := range uint64(seeds) {
		o := DefaultOptions()
		o.Seed, o.Trace, o.Nodes, o.Strategy = seed, true, 6, strategies.LeaseMajority{}
		o.Resolver.Watched = false
		o.Store.OperationTimeout, o.Resolver.LeaseTimeout = 500*time.Millisecond, 500*time.Millisecond
		o.Resolver.LeaseDeadline = 600 * time.Millisecond
		o.Store.Latency = 50 * time.Millisecond
		w, err := New(o)
		require.NoError(t, err)
		w.At(20*time.Second, func() {
			w.Partition([]int{0, 3, 5}, []int{1, 2, 4})
			w.SetStore(StoreFault{Conflicts: 1}, 0, 1, 2, 3, 4)
		})
		w.Run(5 * time.Minute)
		require.Empty(t, w.Finish(), w.Story())
		if len(w.Survivors()) == 0 {
			nobody++
		}
	}
	require.Positive(t, nobody, "the storm has to be strong enough to matter")
}
