package world

import (
	"cmp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sbr/reachability"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// recorded is a world of five with a history: a partition, a restart, a pause, a store that fails for one
// node.
func recorded(t *testing.T, seed uint64, history bool) *World {
	t.Helper()
	o := DefaultOptions()
	o.Seed, o.Trace = seed, history
	o.Resolver.Watched, o.Probe = true, reachability.DefaultSettings()
	o.Strategy = strategies.LeaseMajority{AcquireLeaseDelayForMinority: 2 * time.Second}
	w, err := New(o)
	require.NoError(t, err)
	w.At(10*time.Second, func() { w.Partition([]int{0, 1, 2}, []int{3, 4}) })
	w.At(11*time.Second, func() { w.SetStore(StoreFault{Access: Silent}, 4) })
	w.At(45*time.Second, func() { w.Nodes()[1].Pause(5 * time.Second) })
	w.At(90*time.Second, func() { w.Heal() })
	w.At(100*time.Second, func() { w.Nodes()[3].Restart() })
	w.At(110*time.Second, func() { w.Nodes()[2].Leave() })
	w.At(115*time.Second, func() { w.Nodes()[1].Crash() })
	w.At(116*time.Second, func() { w.Cut(0, 3, false) })
	w.Run(118 * time.Second)
	return w
}

// Replayed to the end, the views are those that the membership has.
func TestHistory_Views(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		w := recorded(t, seed, true)
		sights, failures := make(map[[2]string]string), 0
		for _, c := range w.History().Changes {
			switch {
			case c.As != "":
				sights[[2]string{*c.Node, *c.Sees}] = c.As
				if c.As == seesFailed {
					failures++
				}
			case c.State == stateStarting:
				for _, s := range w.nodes {
					sights[[2]string{*c.Node, s.Name}] = seesUnknown
				}
			}
		}
		require.GreaterOrEqual(t, failures, 12, "each of the five failed whom it could not reach")
		for i, o := range w.nodes {
			for j, s := range w.nodes {
				if i == j || !o.Up() {
					continue
				}
				want := seesUnknown
				if o.proc.knows(s.proc) {
					want = either(o.proc.peer(s.proc).status == failed, seesFailed, seesAlive)
				}
				got := cmp.Or(sights[[2]string{o.Name, s.Name}], seesAlive)
				if got == seesMissed {
					got = seesAlive // as far as the membership knows
				}
				require.Equal(t, want, got, "seed %d: %s of %s", seed, o.Name, s.Name)
			}
		}
	}
}

// A process that starts anew says whom it sees, also where its predecessor had seen the same.
func TestHistory_RestartSeesAnew(t *testing.T) {
	o := DefaultOptions()
	o.Trace = true
	o.Strategy = strategies.LeaseMajority{}
	w, err := New(o)
	require.NoError(t, err)
	w.At(7*time.Second, func() {
		w.Nodes()[2].Crash()
		w.Nodes()[2].Restart()
	})
	w.Run(10 * time.Second)
	var seen []string
	for _, c := range w.History().Changes {
		if c.As == seesAlive && *c.Node == "n3" {
			seen = append(seen, *c.Sees)
		}
	}
	require.ElementsMatch(t, []string{"n1", "n2", "n4", "n5"}, seen)
}

func TestHistory_IsBounded(t *testing.T) {
	w := recorded(t, 1, true)
	r := w.history
	r.settle()
	before := len(r.h.Changes)
	r.size = maxHistory - 1
	r.add(Change{Holder: r.name(1)})
	require.Len(t, r.h.Changes, before+1)
	require.False(t, w.History().Truncated)
	r.add(Change{Holder: r.name(2)})
	require.Len(t, r.h.Changes, before+1)
	require.True(t, w.History().Truncated)
}

// The hash covers when, who, what and about whom, whether or not the caller wants words.
func TestHash_CoversWhoWhenAndWhat(t *testing.T) {
	happen := map[string]func(w *World){
		"nothing":           func(*World) {},
		"n1 condemns n2":    func(w *World) { detects(w, 0, 1, true) },
		"n1 condemns n3":    func(w *World) { detects(w, 0, 2, true) },
		"n2 condemns n3":    func(w *World) { detects(w, 1, 2, true) },
		"n1 sees n2 again":  func(w *World) { detects(w, 0, 1, false) },
		"later":             func(w *World) { w.Run(2 * time.Second); detects(w, 0, 1, true) },
		"n1 forgets n2":     func(w *World) { w.note(w.procs[0], "forgets", "%s", w.procs[1]) },
		"n1 forgets n3":     func(w *World) { w.note(w.procs[0], "forgets", "%s", w.procs[2]) },
		"n1 goes down":      func(w *World) { w.note(w.procs[0], "down", "%s", "because of this") },
		"n1 goes down, too": func(w *World) { w.note(w.procs[0], "down", "%s", "because of that") },
		"the world has it":  func(w *World) { w.note(nil, "down", "%s", "because of this") },
		"attempt 1":         func(w *World) { w.note(w.procs[0], "reads", "attempt %d", uint64(1)) },
		"attempt 2":         func(w *World) { w.note(w.procs[0], "reads", "attempt %d", uint64(2)) },
		"one argument":      func(w *World) { w.note(nil, "x", "%s", "a") },
		"another one":       func(w *World) { w.note(nil, "x", "%s", "b") },
		"a number":          func(w *World) { w.note(nil, "x", "%d", 7) },
		"a time":            func(w *World) { w.note(nil, "x", "%v", 8*time.Second) },
		"names":             func(w *World) { w.note(nil, "x", "%v", names{"a", "b"}) },
		"other names":       func(w *World) { w.note(nil, "x", "%v", names{"a", "c"}) },
		"a fault":           func(w *World) { w.note(nil, "x", "%v", StoreFault{Access: Silent}) },
		"another fault":     func(w *World) { w.note(nil, "x", "%v", StoreFault{Access: Refused}) },
		"a partition": func(w *World) {
			w.net.group[1] = 1
			w.notePartition()
		},
		"another partition": func(w *World) {
			w.net.group[2] = 1
			w.notePartition()
		},
	}
	hashes := make(map[string]string)
	for name, f := range happen {
		w := healthy(t, func(o *Options) { o.Trace = false })
		w.Run(time.Second)
		f(w)
		words := healthy(t, nil)
		words.Run(time.Second)
		f(words)
		require.Equal(t, w.Hash(), words.Hash(), name)
		require.Empty(t, hashes[w.Hash()], "%s is the same as %s", name, hashes[w.Hash()])
		hashes[w.Hash()] = name
	}
}

func TestNames_AFewOfMany(t *testing.T) {
	require.Equal(t, "[a b]", names{"a", "b"}.String())
	many := make(names, 100)
	for i := range many {
		many[i] = sbr.ID("x")
	}
	require.Regexp(t, `^\[x( x){49}\] … 100 in all$`, many.String())
}

func TestAddress_InTheOrderOfTheNodes(t *testing.T) {
	require.Equal(t, "10.0.0.9:7946", address(9))
	require.Equal(t, "10.0.1.10:7946", address(10))
	require.Equal(t, "10.0.2.100:7946", address(100))
	for n := 1; n < 10_000; n++ {
		a, b := sbr.Member{Addr: address(n)}, sbr.Member{Addr: address(n + 1)}
		require.Negative(t, sbr.CompareMembers(&a, &b), "%s and %s", a.Addr, b.Addr)
	}
}

func healthy(t *testing.T, change func(o *Options)) *World {
	t.Helper()
	o := DefaultOptions()
	o.Strategy = strategies.LeaseMajority{AcquireLeaseDelayForMinority: 2 * time.Second}
	o.Trace = true
	if change != nil {
		change(&o)
	}
	w, err := New(o)
	require.NoError(t, err)
	return w
}

// A world is settled while it is whole, unsettled from the cut on, and settled again once one side is gone.
func TestSettled_FollowsTheTruth(t *testing.T) {
	w := healthy(t, nil)
	w.Run(20 * time.Second)
	require.True(t, w.Settled())
	require.Zero(t, w.Stirred())
	w.Partition([]int{0, 1, 2}, []int{3, 4})
	require.False(t, w.Settled(), "before anybody has noticed")
	w.Run(30 * time.Second)
	require.False(t, w.Settled(), "before anybody has decided")
	w.Run(3 * time.Minute)
	require.True(t, w.Settled())
	require.Equal(t, []string{"n4", "n5"}, w.Down())
	require.Greater(t, w.Stirred(), 40*time.Second)
	require.Less(t, w.Stirred(), time.Minute)
}

// Stirred is the moment from which on the world is settled, however late a member forgets a downed one.
func TestStirred_IsWhenTheWorldHadSettled(t *testing.T) {
	const step = 10 * time.Millisecond
	for seed := range uint64(8) {
		w := healthy(t, func(o *Options) { o.Nodes, o.Seed = 20, seed })
		w.Run(20 * time.Second)
		w.Partition([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
		var unsettled time.Duration
		for at := 20 * time.Second; at < 2*time.Minute; at += step {
			if w.Run(at); !w.Settled() {
				unsettled = at
			}
		}
		require.True(t, w.Settled())
		require.InDelta(t, unsettled+step/2, w.Stirred(), float64(step/2), "seed %d", seed)
	}
}

// What a clock shows does not jump when its rate changes, and the next deadline moves with the rate.
func TestSetClock_ChangesTheRateOfARunningProcess(t *testing.T) {
	w := healthy(t, nil)
	w.Run(10 * time.Second)
	p := w.Nodes()[0].proc
	w.Nodes()[0].SetClock(0.5)
	require.Equal(t, 10*time.Second, p.clock())
	w.Run(20 * time.Second)
	require.Equal(t, 15*time.Second, p.clock())
	require.Equal(t, 30*time.Second, p.wall(20*time.Second))
}
