package world

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sbr/reachability"
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

// A member that cannot arm, and that nothing ever told its fate, does not break S2; a member that could know
// it does.
func TestStaysDown_WhoWasNeverTold(t *testing.T) {
	const start, restart, cut, end = time.Minute, 3 * time.Minute, 4 * time.Minute, 8 * time.Minute
	for name, tc := range map[string]struct {
		change func(w *World)
		broken bool
	}{
		"cut off":                   {func(*World) {}, false},
		"cut off, but it watches":   {func(w *World) { w.rules.Resolver.Watched = true }, true},
		"reached by one who knows":  {(*World).Heal, true},
		"cut off, but it could arm": {func(w *World) { w.rules.Resolver.MinMembers = 2 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := smallest(t, 3)
			w.At(start, w.Nodes()[0].Crash)
			w.At(2*start, w.Nodes()[2].Crash)
			w.At(restart, w.Nodes()[2].Restart)
			w.At(cut, func() { w.Partition([]int{1}, []int{2}) })
			w.Run(end)
			tc.change(w)
			(&staysDown{}).rested(w)
			if !tc.broken {
				require.Empty(t, w.Violations(), w.Story())
				return
			}
			require.Len(t, w.Violations(), 1, w.Story())
			require.Equal(t, "S2 broken at 480.000s: n3#2 is up although the last verdict (3) leaves it out",
				w.Violations()[0].String())
		})
	}
}

// Finish checks what must hold once everything has come to rest, and returns all broken promises. Call it
// after a Run that was long enough after the last fault for every deadline to pass: scenario files need not
// be.
func (w *World) Finish() []Violation {
	w.eachCheck(func(c checker) { c.rested(w) })
	w.comesToRest()
	return w.violations
}

// comesToRest checks the end of a run: every member that is up is at work, none is in doubt, and all see the
// same members.
func (w *World) comesToRest() {
	up := w.up()
	for _, p := range up {
		if p.paused {
			w.violate("rest", "%s is paused to the end: the run was too short", p.id)
			return
		}
	}
	for _, p := range up {
		if s := p.r.State(); s != sbr.StateUp {
			w.violate("rest", "%s is still %s", p.id, s)
		}
		if p.request != "" {
			w.violate("rest", "%s has not answered the operator who asked it to down %s", p.id, p.request)
		}
		s := p.r.Snapshot()
		for i := range s.Members {
			m := &s.Members[i]
			q := w.byID[m.ID]
			switch {
			case m.Unreachable && m.Status <= sbr.Up:
				w.violate("rest", "%s still lists %s as unreachable", p.id, m.ID)
			case !q.runs() && m.Downable() && m.Status != sbr.Leaving:
				w.violate("rest", "%s lists %s as %s, which does not run any more", p.id, m.ID, m.Status)
			}
		}
		for _, q := range up {
			if p == q || strangers(p, q) || !w.net.connected(p.node.index, q.node.index) {
				continue
			}
			if m, ok := p.r.Member(q.id); !ok || m.Status != sbr.Up {
				w.violate("rest", "%s does not list %s as a member", p.id, q.id)
			}
		}
	}
}

// smallest is a world of three members without a watch, the least of whom is how many must be there before
// they arm.
func smallest(t *testing.T, least int) *World {
	t.Helper()
	o := DefaultOptions()
	o.Trace, o.Nodes = true, 3
	o.Resolver.MinMembers = least
	o.Resolver.Watched = false
	o.Strategy = strategies.LeaseMajority{}
	w, err := New(o)
	require.NoError(t, err)
	return w
}

// Two sides that are both up break S1, but for a member that cannot arm, because fewer than min-members are
// there.
func TestOneSide_WhoIsNoSideYet(t *testing.T) {
	// by then everybody has armed, or what happened before is decided
	const armed, cut = time.Minute, 4 * time.Minute
	for name, tc := range map[string]struct {
		least  int
		play   func(w *World)
		end    time.Duration
		state  sbr.State // of n3 at the end
		broken bool
	}{
		"both have armed": {3, func(w *World) {
			w.At(cut, func() { w.Partition([]int{0, 1}, []int{2}) })
		}, cut, sbr.StateUp, true},
		"both have armed, and fewer than min-members are left": {3, func(w *World) {
			w.At(armed, w.Nodes()[0].Crash)
			w.At(cut, func() { w.Partition([]int{1}, []int{2}) })
		}, cut, sbr.StateUp, true},
		"it has not armed, and could": {3, func(w *World) {
			w.At(time.Second, func() { w.Partition([]int{0, 1}, []int{2}) })
		}, 2 * time.Second, sbr.StateArming, true},
		"nobody has armed, nor can": {4, func(w *World) {
			w.At(armed, func() { w.Partition([]int{0, 1}, []int{2}) })
		}, 2 * cut, sbr.StateArming, false},
		"the other one has armed, it cannot": {3, func(w *World) {
			w.At(armed, w.Nodes()[0].Crash)
			w.At(2*armed, w.Nodes()[2].Crash)
			w.At(3*armed, w.Nodes()[2].Restart) // the verdict about the crashed member was written
			w.At(cut, func() { w.Partition([]int{1}, []int{2}) })
		}, 2 * cut, sbr.StateArming, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := smallest(t, tc.least)
			tc.play(w)
			w.Run(tc.end)
			require.Equal(t, tc.state, w.nodes[2].proc.r.State(), w.Story())
			(&oneSide{}).rested(w)
			if !tc.broken {
				require.Empty(t, w.Violations(), w.Story())
				return
			}
			require.NotEmpty(t, w.Violations(), w.Story())
			require.Equal(t, "S1", w.Violations()[0].Promise)
		})
	}
}

// A member that can be told its fate is held to it, armed or not.
func TestOneSide_EnemiesThatReachEachOther(t *testing.T) {
	w := smallest(t, 4)
	w.Run(time.Minute)
	p, q := w.nodes[0].proc, w.nodes[1].proc
	require.True(t, p.forming())
	p.r.Step(p.clock(), sbr.Told{From: q.id, Verdict: sbr.Verdict{Token: 1, Survivors: []sbr.ID{p.id},
		Down: []sbr.ID{q.id}}})
	q.r.Step(q.clock(), sbr.Told{From: p.id, Verdict: sbr.Verdict{Token: 2, Survivors: []sbr.ID{q.id},
		Down: []sbr.ID{p.id}}})
	(&oneSide{}).rested(w)
	require.Equal(t, "S1 broken at 60.000s: n1#1 and n2#1 are both up and have downed each other",
		w.Violations()[0].String())
}

// Three links that work one way, in a circle: every member hears of every other, so Serf's suspicions are refuted, and
// without own probes no member notices. With probes the members that stay up must reach each other.
func TestOneSide_WhoHearsOfEachOtherWithoutProbes(t *testing.T) {
	for probes, broken := range map[bool]bool{false: false, true: true} {
		w := smallest(t, 3)
		w.Run(time.Minute)
		if w.opts.Probe = (reachability.Settings{}); probes {
			w.opts.Probe = reachability.DefaultSettings()
		}
		for i := range 3 {
			w.setCut((i+1)%3, i)
		}
		w.net.valid = false
		require.Len(t, w.up(), 3)
		(&oneSide{}).rested(w)
		require.Equal(t, broken, len(w.Violations()) > 0, "probes: %t", probes)
		w.setCut(0, 1)
		(&oneSide{}).rested(w)
		require.NotEmpty(t, w.Violations(), "what n1 says gets to nobody")
	}
}

// Each rule of the chain of verdicts, broken by one write.
func TestChain_EachWrite(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		promise string
		write   func(w *World, r *lease.Record)
	}{
		"as it should be":               {"", func(*World, *lease.Record) {}},
		"a holder that is not silent":   {"S3", func(w *World, _ *lease.Record) { w.checks[0].(*chain).heard = w.now - time.Second }},
		"another holder, no new token":  {"S3", func(_ *World, r *lease.Record) { r.Token-- }},
		"a token that grows by two":     {"token", func(_ *World, r *lease.Record) { r.Token++ }},
		"a token that goes back":        {"token", func(_ *World, r *lease.Record) { r.Token -= 2 }},
		"an older verdict, told again":  {"token", func(w *World, r *lease.Record) { w.store.writesBack = true; r.Token -= 2 }},
		"a newer verdict, told again":   {"", func(w *World, r *lease.Record) { w.store.writesBack = true; r.Token++ }},
		"a survivor that was left out":  {"chain", func(_ *World, r *lease.Record) { r.Verdict.Survivors = []sbr.ID{"n4#1"} }},
		"a verdict that removes nobody": {"chain", func(_ *World, r *lease.Record) { r.Verdict.Down = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			w := smallest(t, 3)
			w.Run(time.Hour)
			ids := []sbr.ID{w.nodes[0].proc.id, w.nodes[1].proc.id, w.nodes[2].proc.id}
			before := lease.Record{Holder: string(ids[0]), Token: 5, Verdict: &sbr.Verdict{Token: 5, Survivors: ids,
				Down: []sbr.ID{"n4#1"}}}
			after := lease.Record{Holder: string(ids[1]), Token: 6, Verdict: &sbr.Verdict{Token: 6, Survivors: ids[:2],
				Down: ids[2:]}}
			w.checks = []checker{&chain{}}
			tc.write(w, &after)
			w.checks[0].committed(w, w.nodes[1].proc, &before, &after)
			var broken []string
			for _, v := range w.Violations() {
				broken = append(broken, v.Promise)
			}
			if tc.promise == "" {
				require.Empty(t, broken)
			} else {
				require.Equal(t, []string{tc.promise}, broken, w.Violations())
			}
		})
	}
}
