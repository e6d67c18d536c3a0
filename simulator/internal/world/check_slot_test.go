package world

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	core "github.com/serf-sbr/serf-sbr/internal/slot"
)

// Each promise about slots can be broken, and is then named.
func TestSlotChecks_CanFail(t *testing.T) {
	member := func(w *World, i int) *slotMember { return w.nodes[i].proc.slotMembers[0] }
	for name, tc := range map[string]struct {
		promise string
		lease   bool
		harm    func(w *World)
	}{
		"a second run elsewhere": {"X1", false, func(w *World) {
			member(w, 1).start(core.Start{Run: 1, Token: 100})
			w.slots[0].look()
		}},
		"a second run on the same member": {"X1", false, func(w *World) { member(w, 0).start(core.Start{Run: 2, Token: 100}) }},
		"a run that was handed over before it had ended": {"X1", false, func(w *World) {
			member(w, 1).start(core.Start{Run: 1, Token: 100, From: w.nodes[0].proc.id})
		}},
		"a token that does not grow, with a lease": {"X2", true, func(w *World) { member(w, 1).start(core.Start{Run: 1, Token: 1}) }},
		"a token that does not grow, handed over": {"X2", false, func(w *World) {
			member(w, 1).start(core.Start{Run: 1, Token: 1, From: w.nodes[0].proc.id})
		}},
		"the state of another run": {"X2", true, func(w *World) { member(w, 1).start(core.Start{Run: 1, Token: 100, State: []byte("7")}) }},
		"an older write after a newer one": {"X3", true, func(w *World) {
			older := member(w, 0).run
			member(w, 1).start(core.Start{Run: 1, Token: 1})
			w.slots[0].resource.take(w.slots[0], member(w, 1).run)
			w.slots[0].resource.take(w.slots[0], older)
		}},
		"a newer write is refused": {"X3", true, func(w *World) {
			w.slots[0].resource.take(w.slots[0], member(w, 0).run)
			member(w, 1).start(core.Start{Run: 1})
			w.slots[0].resource.take(w.slots[0], member(w, 1).run)
		}},
		"nothing runs": {"X4", false, func(w *World) {
			member(w, 0).run.cease()
			w.Run(w.now + 5*time.Minute)
		}},
		"it runs where it should not": {"X4", false, func(w *World) {
			r := member(w, 0).run
			r.executor, member(w, 0).run = &member(w, 3).executor, nil
			w.Run(w.now + 5*time.Minute)
		}},
		"a downed member goes on": {"X5", false, func(w *World) { member(w, 0).downed() }},
		"a downed member starts": {"X5", false, func(w *World) {
			w.nodes[1].proc.downReason = "by hand"
			member(w, 1).start(core.Start{Run: 1, Token: 100})
		}},
		"an answer to nothing":        {"X6", false, func(w *World) { member(w, 1).answer(core.Answer[handover.Message]{Ref: 7}) }},
		"a stop of what runs no more": {"X6", false, func(w *World) { member(w, 1).stop(9, "") }},
	} {
		t.Run(name, func(t *testing.T) {
			w := slotted(t, 1, tc.lease, nil, nil)
			w.Run(60 * time.Second)
			require.NotNil(t, member(w, 0).run)
			require.Empty(t, w.Violations())
			tc.harm(w)
			require.NotEmpty(t, w.Violations())
			promises := make([]string, 0, len(w.Violations()))
			for _, v := range w.Violations() {
				promises = append(promises, v.Promise)
			}
			require.Contains(t, promises, tc.promise)
		})
	}
}

// A write that was in the hand of a run that slept is kept out by the fence, and would have done harm without it.
func TestSlot_FenceKeepsOutWhoWakesUp(t *testing.T) {
	rejected, interleaved := 0, 0
	for seed := range uint64(20) {
		w := slotted(t, seed, seed%2 == 0, nil, func(w *World) { w.At(40*time.Second, func() { w.Nodes()[0].Pause(4 * time.Minute) }) })
		w.Run(8 * time.Minute)
		require.Empty(t, w.Finish())
		rejected += w.Slots()[0].Rejected
		interleaved += w.Slots()[0].Interleaved
	}
	require.Positive(t, rejected)
	require.Positive(t, interleaved)
}

// Who leaves in order hands over what it runs, and leaves then: the gap is as long as the run takes to end and a few messages.
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
