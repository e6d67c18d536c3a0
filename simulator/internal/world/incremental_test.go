package world

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/race"
	"github.com/serf-sbr/serf-sbr/sbr/reachability"
)

// What is kept up to date change by change is what one look at everything finds, at every moment of any run.
func TestIncremental_IsWhatOneLookAtEverythingFinds(t *testing.T) {
	seeds := uint64(300)
	if race.Enabled {
		seeds = 40
	}
	for seed := uint64(1); seed <= seeds; seed++ {
		p := randomPlan(seed)
		if p.options.Probe = (reachability.Settings{}); seed%2 == 0 {
			p.options.Probe = reachability.DefaultSettings()
		}
		w, err := New(p.options)
		require.NoError(t, err)
		p.play(w)
		for at := time.Duration(0); at < p.rest+30*time.Second; at += 400 * time.Millisecond {
			w.Run(at)
			consistent(t, w)
			require.False(t, t.Failed(), "seed %d at %v", seed, at)
		}
	}
}

func consistent(t *testing.T, w *World) {
	t.Helper()
	running := 0
	for _, p := range w.procs {
		if p.runs() {
			running++
		}
		if !p.attends() {
			continue
		}
		var known, knownUp, unreached int
		for i := range p.peers {
			q, s := &p.peers[i], p.w.procs[i]
			if !q.known {
				require.False(t, q.missed)
				continue
			}
			known++
			if s.runs() {
				knownUp++
			}
			if q.wantFailed {
				unreached++
			}
			require.Equal(t, w.gone(p, s), q.wantFailed, "%s of %s", p.id, s.id)
			if w.opts.Probe.On() {
				apart := !s.alive() || !w.net.direct(p.node.index, s.node.index)
				require.Equal(t, apart, q.wantMissed, "%s of %s", p.id, s.id)
			}
		}
		require.Equal(t, []int{known, knownUp, unreached}, []int{p.known, p.knownUp, p.unreached}, "%s", p.id)
	}
	require.Equal(t, running, w.running)
}

// The components are those that a search over all links finds.
func TestNetwork_ComponentsWithCuts(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := network{cut: make(map[[2]int]bool)}
		for range 2 + rng.IntN(12) {
			n.group = append(n.group, rng.IntN(2))
		}
		for range rng.IntN(4 * len(n.group)) {
			n.cut[[2]int{rng.IntN(len(n.group)), rng.IntN(len(n.group))}] = true
		}
		for a := range n.group {
			reached := reach(&n, a)
			for b := range n.group {
				require.Equal(t, reached[b], n.connected(a, b), "seed %d: %d and %d", seed, a, b)
			}
		}
	}
}

func reach(n *network, a int) map[int]bool {
	reached := map[int]bool{a: true}
	for todo := []int{a}; len(todo) > 0; {
		x := todo[0]
		todo = todo[1:]
		for y := range n.group {
			if !reached[y] && n.direct(x, y) {
				reached[y] = true
				todo = append(todo, y)
			}
		}
	}
	return reached
}
