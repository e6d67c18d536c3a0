package coordinator_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/serf-sbr/serf-sbr/sbr"
)

var traced = flag.Bool("traced", false, "show what the machines say and do in a world that fails")

// bound is how long after the last fault all shards run again: detection and removal, the margin (of the member, and then of what the next coordinator has
// to wait for), a term that is refused, and some tries over a network that does not lose anything any more.
const bound = detection + stableAfter + 2*margin + 12*interval + 4*time.Second

// TestProperty_OneRunPerShard: whatever the network and the members do, no shard ever runs twice, tokens grow in real time (both are checked by the world
// at each start), and once the faults are over all shards run within the bound.
func TestProperty_OneRunPerShard(t *testing.T) {
	for _, useLease := range []bool{false, true} {
		t.Run(fmt.Sprintf("lease=%v", useLease), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { chaos(t, useLease) })
		})
	}
}

func chaos(t *rapid.T, useLease bool) {
	w := newWorld(t, rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 8).Draw(t, "shards"), useLease)
	if *traced {
		w.trace = func(format string, args ...any) { t.Logf("%v "+format, append([]any{w.now}, args...)...) }
	}
	count := rapid.IntRange(2, 5).Draw(t, "hosts")
	w.loss = rapid.SampledFrom([]float64{0, 0.05, 0.3}).Draw(t, "loss")
	w.dup = rapid.SampledFrom([]float64{0, 0.2}).Draw(t, "dup")
	w.jitter = rapid.SampledFrom([]time.Duration{0, 50 * time.Millisecond, 400 * time.Millisecond}).Draw(t, "jitter")
	slow := rapid.SampledFrom([]time.Duration{1, 300 * time.Millisecond, time.Second}).Draw(t, "stop")
	w.stopTakes = func() time.Duration { return time.Duration(w.rng.Int64N(int64(slow))) }
	w.limits.MaxMoves = rapid.IntRange(0, 3).Draw(t, "moves")
	w.limits.MaxRecoveries = rapid.IntRange(1, 4).Draw(t, "recoveries")
	for i := range count {
		w.join(sbr.ID(fmt.Sprintf("n%d#1", i+1)))
	}
	lives := count
	for range rapid.IntRange(1, 8).Draw(t, "steps") {
		w.pass(time.Duration(rapid.IntRange(0, 6000).Draw(t, "ms")) * time.Millisecond)
		n := w.nodes[rapid.IntRange(0, len(w.nodes)-1).Draw(t, "who")]
		what := rapid.SampledFrom([]string{"crash", "cut", "connect", "pause", "resume", "leave", "join", "chief", "ends", "lease"}).Draw(t, "what")
		if what == "join" && lives < 8 {
			lives++
			w.join(sbr.ID(fmt.Sprintf("n%d#%d", 1+lives%count, lives)))
			continue
		}
		strike(w, n, what)
	}
	for _, n := range w.nodes {
		if n.paused && !n.crashed {
			n.resume()
		}
		if n.cut && !n.crashed {
			n.connect()
		}
	}
	w.loss, w.jitter = 0, 0
	if w.alive() == 0 {
		w.join("last#1")
	}
	for s := range w.shards {
		w.lease(s).foreign = false
	}
	w.pass(bound)
	require.Equal(t, w.shards, w.running(), "all shards run %v after the last fault", bound)
}

// alive counts the members that can run something when all is over.
func (w *world) alive() (count int) {
	for _, n := range w.nodes {
		if !n.crashed && !n.verdict && !n.leaving {
			count++
		}
	}
	return count
}

// strike does something to a member, if it can be done to it.
func strike(w *world, n *node, what string) {
	healthy := !n.silent() && !n.verdict && !n.gone
	switch {
	case n.crashed:
	case what == "crash":
		if w.alive() > 1 || !healthy {
			n.crash()
		}
	case what == "connect" && n.cut:
		n.connect()
	case what == "resume" && n.paused:
		n.resume()
	case !healthy:
	case what == "cut":
		n.isolate()
	case what == "pause":
		n.pause()
	case what == "leave" && !n.leaving:
		n.leave()
	case what == "chief" && !n.leaving && w.chief != nil && w.chief.coord != nil && !w.chief.silent():
		w.appoint(n)
	case what == "ends":
		for s, r := range n.runs {
			if !r.stopping {
				n.w.after(0, func() { n.end(s, r.number) })
			}
		}
	case what == "lease":
		w.lease(w.rng.IntN(w.shards)).lose(w, n)
	}
}
