package world

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr/reachability"
)

// stock is a world of members on Serf's own detector, without probes of their own, that decide nothing.
func stock(t *testing.T, nodes int) *World {
	t.Helper()
	o := large(1, nodes)
	o.Probe = reachability.Settings{}
	o.Resolver.StableAfter, o.Resolver.DownAllWhenUnstable = 10*time.Hour, 0
	o.Trace = true
	w, err := New(o)
	require.NoError(t, err)
	return w
}

// A suspicion lasts as memberlist computes it: by the members, and shorter with each that confirms it
// (suspicion.go).
func TestMemberlist_SuspicionTimes(t *testing.T) {
	for _, tc := range []struct {
		nodes int
		want  []time.Duration // with 0, 1, … confirmations
	}{
		{2, []time.Duration{4 * time.Second, 4 * time.Second}}, // too few to wait for any
		{3, []time.Duration{4 * time.Second, 4 * time.Second}},
		{5, []time.Duration{24 * time.Second, 11381 * time.Millisecond, 4 * time.Second}},
		{100, []time.Duration{48 * time.Second, 22762 * time.Millisecond, 8 * time.Second}},
	} {
		w := stock(t, tc.nodes)
		p := w.nodes[0].proc
		for i, want := range tc.want {
			if i < tc.nodes {
				p.hearSuspect(1, 1, int32((i+2)%tc.nodes))
			}
			require.InDelta(t, want, p.peers[1].until, float64(2*time.Millisecond), "%d members, %d confirmations",
				tc.nodes, i)
		}
	}
}

// A member that hears that it is suspected, or dead, says a higher number; the others believe that one only.
func TestMemberlist_RefutesWithAHigherNumber(t *testing.T) {
	w := stock(t, 5)
	accused, other := w.nodes[1].proc, w.nodes[2].proc
	other.hearSuspect(accused.name, 1, 0)
	accused.hearSuspect(accused.name, 1, 0)
	require.EqualValues(t, 2, accused.peer(accused).inc)
	require.Equal(t, 1, accused.awareness, "it doubts itself")
	other.hearAlive(accused.name, accused, 1)
	require.Equal(t, suspect, other.peer(accused).state)
	other.hearAlive(accused.name, accused, 2)
	require.Equal(t, alive, other.peer(accused).state)
	other.hearDead(accused.name, 1, 0)
	require.Equal(t, alive, other.peer(accused).state, "old news")
	w.Run(time.Minute)
	for _, n := range w.nodes {
		require.Equal(t, present, n.proc.peer(accused).status, n.Name)
	}
}

// News goes to GossipNodes members each interval, RetransmitMult*ceil(log10(n+1)) times in all; the news that
// was sent least often goes first, of that the newest.
func TestMemberlist_GossipIsSentSoOften(t *testing.T) {
	w := stock(t, 5)
	p := w.nodes[0].proc
	c := p.spread(news{kind: newsSuspect, name: 1, from: 2, inc: 1})
	p.gossip()
	require.Equal(t, w.serf.GossipNodes, c.sent)
	p.gossip()
	require.Equal(t, 4, c.sent)
	require.True(t, c.over)

	var b broadcasts
	first, second := &broadcast{news: news{kind: newsDead, name: 1}},
		&broadcast{news: news{kind: newsDead, name: 2}}
	b.add(first)
	b.add(second)
	size := second.size(w)
	got, room := b.take(w, nil, size, 9)
	require.Equal(t, []news{second.news}, got)
	require.Zero(t, room)
	got, _ = b.take(w, nil, size, 9)
	require.Equal(t, []news{first.news}, got, "it was sent less often")
}

// An exchange of lists brings what gossip has not: also members that have left, and a death as a suspicion
// that can be refuted.
func TestMemberlist_ExchangeOfLists(t *testing.T) {
	w := stock(t, 5)
	p, q := w.nodes[0].proc, w.nodes[1].proc
	q.hearDead(2, 1, 3)
	q.hearDead(4, 1, 4)
	p.merge(q)
	require.Equal(t, suspect, p.peers[2].state)
	require.Equal(t, departed, p.peers[4].state)
}

// The dead are forgotten also while Serf rests, as its ticks would have done: the first number of a member that
// starts again is news then.
func TestMemberlist_ForgetsTheDeadWhileItRests(t *testing.T) {
	w, err := New(large(1, 5))
	require.NoError(t, err)
	w.Run(10 * time.Second)
	w.nodes[2].Crash()
	w.Run(5 * time.Minute)
	require.True(t, w.serfRests)
	w.wakeSerf()
	for _, i := range []int{0, 1, 3, 4} {
		require.Equal(t, unheard, w.nodes[i].proc.peers[2].state)
	}
}

// What happens to links reaches detection, as it does in Serf: indirect probes hide a single cut; a member
// that hears nothing is called failed and comes back, again and again; and where most packets vanish members
// call each other failed.
func TestMemberlist_LinksReachDetection(t *testing.T) {
	for _, tc := range []struct {
		name    string
		do      func(w *World)
		detects bool
	}{
		{"whole", func(*World) {}, false},
		{"one link is cut", func(w *World) { w.Cut(1, 3, true) }, false},
		{"one link is cut one way", func(w *World) { w.Cut(1, 3, false) }, false},
		{"two of three paths are cut", func(w *World) { w.Cut(1, 3, true); w.Cut(1, 2, true) }, false},
		{"a member hears nothing", func(w *World) {
			for i := 1; i < 5; i++ {
				w.Cut(i, 0, false)
			}
		}, true},
		{"a member is not heard", func(w *World) {
			for i := 1; i < 5; i++ {
				w.Cut(0, i, false)
			}
		}, true},
		{"nine of ten packets vanish", func(w *World) { w.SetLoss(0.9) }, true},
		{"one of a hundred vanishes", func(w *World) { w.SetLoss(0.01) }, false},
		{"links slower than every time-out", func(w *World) {
			for i := range 5 {
				for j := range 5 {
					if i != j {
						w.SetLink(i, j, Network{Latency: 11 * time.Second})
					}
				}
			}
		}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := stock(t, 5)
			w.At(10*time.Second, func() { tc.do(w) })
			w.Run(5 * time.Minute)
			if tc.detects {
				require.Contains(t, w.Story(), "failed")
			} else {
				require.NotContains(t, w.Story(), "failed")
			}
		})
	}
}
