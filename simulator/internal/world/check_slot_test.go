package world

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	core "github.com/serf-sbr/serf-sbr/internal/slot"
)

// Each promise about slots and shards can be broken, and is then named.
func TestSlotChecks_CanFail(t *testing.T) {
	const large = 1 << 60 // a token
	member := func(w *World, i int) *slotMember { return w.nodes[i].proc.slotMember(w.slots[0]) }
	hostOn := func(w *World, i int) *shardHost { return w.nodes[i].proc.shardHost(w.shards[0]) }
	type harm func(w *World, s *slot, runner, other *executor)
	both := map[string]struct {
		promise string
		lease   bool
		harm    harm
	}{
		"a second run elsewhere": {"1", false, func(_ *World, s *slot, _, other *executor) {
			other.start(core.Start{Run: 1, Token: large})
			s.look()
		}},
		"a second run on the same member": {"1", false, func(_ *World, _ *slot, runner, _ *executor) {
			runner.start(core.Start{Run: 2, Token: large})
		}},
		"a run that was handed over before it had ended": {"1", false, func(_ *World, _ *slot, runner, other *executor) {
			other.start(core.Start{Run: 1, Token: large, From: runner.p.id})
		}},
		"a token that does not grow, with a lease": {"2", true, func(_ *World, _ *slot, _, other *executor) {
			other.start(core.Start{Run: 1, Token: 1})
		}},
		"a token that does not grow, handed over": {"2", false, func(_ *World, _ *slot, runner, other *executor) {
			other.start(core.Start{Run: 1, Token: 1, From: runner.p.id})
		}},
		"the state of another run": {"2", true, func(_ *World, _ *slot, _, other *executor) {
			other.start(core.Start{Run: 1, Token: 100, State: []byte("7")})
		}},
		"an older write after a newer one": {"3", true, func(_ *World, s *slot, runner, other *executor) {
			older := runner.run
			other.start(core.Start{Run: 1, Token: 1})
			s.resource.take(s, other.run)
			s.resource.take(s, older)
		}},
		"a newer write is refused": {"3", true, func(_ *World, s *slot, runner, other *executor) {
			s.resource.take(s, runner.run)
			other.start(core.Start{Run: 1, Token: 2})
			s.resource.token = 3 // under which nothing was written
			s.resource.take(s, other.run)
		}},
		"it does not run": {"4", false, func(w *World, _ *slot, runner, _ *executor) {
			runner.run.cease()
			w.Run(w.now + 10*time.Minute)
		}},
		"a downed member goes on": {"5", false, func(_ *World, _ *slot, runner, _ *executor) { runner.downed() }},
		"a downed member starts": {"5", false, func(_ *World, _ *slot, _, other *executor) {
			other.p.downReason = "by hand"
			other.start(core.Start{Run: 1, Token: large})
		}},
		"a stop of what runs no more": {"6", false, func(_ *World, _ *slot, _, other *executor) { other.stop(9, "") }},
	}
	breaks := func(t *testing.T, w *World, promise string, harm func()) {
		t.Helper()
		require.Empty(t, w.Violations())
		harm()
		require.True(t, slices.ContainsFunc(w.Violations(), func(v Violation) bool { return v.Promise == promise }),
			"%v", w.Violations())
	}
	slots := func(t *testing.T, lease bool) (w *World, s *slot, runner, other *executor) {
		t.Helper()
		w = slotted(t, 1, lease, nil, nil)
		w.Run(60 * time.Second)
		require.NotNil(t, member(w, 0).executors[0].run)
		return w, w.slots[0], &member(w, 0).executors[0], &member(w, 1).executors[0]
	}
	shards := func(t *testing.T, lease bool) (w *World, s *slot, runner, other *executor) {
		t.Helper()
		w = sharded(t, 1, lease, nil, nil)
		w.Run(2 * time.Minute)
		hosts(t, w)
		s = w.shards[0].slots[0]
		runs := func(n *Node) bool { return n.proc.shardHost(w.shards[0]).executors[0].run != nil }
		idle := slices.IndexFunc(w.nodes, func(n *Node) bool { return !runs(n) })
		return w, s, s.live[0].executor, &hostOn(w, idle).executors[0]
	}
	for name, tc := range both {
		t.Run(name, func(t *testing.T) {
			w, s, runner, other := slots(t, tc.lease)
			breaks(t, w, "X"+tc.promise, func() { tc.harm(w, s, runner, other) })
			w, s, runner, other = shards(t, tc.lease)
			breaks(t, w, "Y"+tc.promise, func() { tc.harm(w, s, runner, other) })
		})
	}
	t.Run("a slot that runs where it should not", func(t *testing.T) {
		w, _, runner, _ := slots(t, false)
		breaks(t, w, "X4", func() {
			r := runner.run
			r.executor, runner.run = &member(w, 3).executors[0], nil
			w.Run(w.now + 5*time.Minute)
		})
	})
	t.Run("a slot's answer to nothing", func(t *testing.T) {
		w, _, _, _ := slots(t, false)
		breaks(t, w, "X6", func() { member(w, 1).answer(7, handover.Clear, 0, nil) })
	})
	for name, tc := range map[string]struct {
		promise string
		harm    harm
	}{
		"a token that does not grow, on one member": {"Y2", func(_ *World, _ *slot, runner, _ *executor) {
			runner.start(core.Start{Run: 2, Token: 1})
		}},
		"one runs where it should not": {"Y4", func(w *World, _ *slot, runner, _ *executor) {
			for _, n := range w.nodes {
				t := n.proc.shardHost(w.shards[0])
				t.stage, n.proc.drivers[t.topic] = hostClosed, nil
			}
			require.False(t, runner.run.over)
			w.Run(w.now + 10*time.Minute)
		}},
		"one moves for ever": {"Y4", func(w *World, s *slot, _, _ *executor) {
			w.Run(w.now + 10*time.Minute)
			from := s.live[0].executor
			idle := slices.IndexFunc(w.nodes,
				func(n *Node) bool { return n.proc.shardHost(w.shards[0]).executors[0].run == nil })
			from.run.cease()
			hostOn(w, idle).executors[0].start(core.Start{Run: 1, Token: large, From: from.p.id})
		}},
		"an answer to nothing": {"Y6", func(w *World, _ *slot, _, _ *executor) {
			hostOn(w, 1).answer(7000, message.State, 0, nil)
		}},
		"too long a message": {"Y6", func(w *World, _ *slot, _, _ *executor) {
			m := message.Message{Kind: message.HandedOver}
			for i := range 3 {
				m.Handed = append(m.Handed, message.Handed{Shard: i, Number: 1, State: make([]byte, message.MaxState)})
			}
			hostOn(w, 1).written(&m)
		}},
		"a coordinator without a term": {"Y6", func(w *World, _ *slot, _, _ *executor) {
			t := hostOn(w, 1)
			t.coordinate(&run{executor: &t.executors[0]})
			w.Run(w.now + time.Second)
		}},
	} {
		t.Run("shards: "+name, func(t *testing.T) {
			w, s, runner, other := shards(t, false)
			breaks(t, w, tc.promise, func() { tc.harm(w, s, runner, other) })
		})
	}
}

// A run that was started where its member had never heard of another's is no mistake, and neither is what it is
// handed over to once the two have met.
func TestSlotChecks_WhatAnUnknowingRunIsHandedOverTo(t *testing.T) {
	w := slotted(t, 1, false, nil, nil)
	w.Run(time.Minute)
	on := func(i int) *executor { return &w.nodes[i].proc.slotMember(w.slots[0]).executors[0] }
	require.NotNil(t, on(0).run)
	met := w.nodes[0].proc.met
	w.nodes[0].proc.met = nil
	on(1).start(core.Start{Run: 1, Token: 1 << 60})
	w.slots[0].look()
	w.nodes[0].proc.met = met
	on(1).run.cease()
	on(2).start(core.Start{Run: 1, Token: 1<<60 + 1, From: on(1).p.id})
	w.slots[0].look()
	require.Empty(t, w.Violations())
	require.Equal(t, 2, w.slots[0].outcome.Overlaps)
}

// A member that leaves in order hands over what it runs, and leaves then: the gap is as long as the run takes
// to end and a few messages.
func TestSlot_LeavesOnceItHasHandedOver(t *testing.T) {
	for seed := range uint64(20) {
		w := slotted(t, seed, seed%2 == 0, func(o *Options) { o.Slots[0].StopTakes = 3 * time.Second }, nil)
		w.Run(40 * time.Second)
		w.nodes[0].proc.resign()
		w.Run(50 * time.Second)
		s := w.slots[0]
		require.Len(t, s.runs, 2)
		require.Equal(t, "n2", s.runs[1].executor.p.node.Name)
		require.Equal(t, w.nodes[0].proc.id, s.runs[1].from)
		require.Less(t, s.runs[1].startedAt-s.runs[0].endedAt, 200*time.Millisecond)
		require.False(t, w.nodes[0].Up())
		require.Empty(t, w.Finish())
	}
}

// Without slots nothing of them exists, and a slot that cannot be played is refused.
func TestSlots_Refused(t *testing.T) {
	for name, change := range map[string]func(o *Options){
		"without a name": func(o *Options) { o.Slots[0].Name = "" },
		"twice":          func(o *Options) { o.Slots = append(o.Slots, o.Slots[0]) },
		"no writes":      func(o *Options) { o.Slots[0].WritesEvery = 0 },
		"no retries":     func(o *Options) { o.Slots[0].NumberOfRetries = 0 },
	} {
		o := slotted(t, 1, false, nil, nil).opts
		o.Members = nil
		change(&o)
		_, err := New(o)
		require.Error(t, err, name)
	}
	require.Empty(t, healthy(t, nil).Slots())
}
