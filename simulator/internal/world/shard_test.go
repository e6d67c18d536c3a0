package world

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	core "github.com/serf-sbr/serf-sbr/internal/slot"
)

// sharded is a world of five with six shards, to which something happens.
func sharded(t testing.TB, seed uint64, lease bool, change func(o *Options), play func(w *World)) *World {
	t.Helper()
	return slotted(t, seed, lease, func(o *Options) {
		s := DefaultShardsOptions()
		s.Name, s.UseLease, s.Count = "orders", lease, 6
		o.Slots, o.Shards = nil, []ShardsOptions{s}
		if change != nil {
			change(o)
		}
	}, play)
}

// hosts are the nodes on which all shards run; it fails where one does not.
func hosts(t testing.TB, w *World) (on []string) {
	t.Helper()
	o := w.Shards()[0]
	require.Equal(t, o.Shards, o.Running, "some run nowhere\n%s", w.Story())
	return o.On
}

// All shards run where they should at the end, whatever happens to whoever coordinates, and to others.
func TestShards_RunOnWhoIsLeft(t *testing.T) {
	all := []string{"n1", "n2", "n3", "n4", "n5"}
	without := func(gone ...string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(n string) bool { return slices.Contains(gone, n) })
	}
	for name, tc := range map[string]struct {
		play func(w *World)
		on   []string
	}{
		"nothing happens":         {func(*World) {}, all},
		"the coordinator leaves":  {func(w *World) { w.At(40*time.Second, w.Nodes()[0].Leave) }, without("n1")},
		"the coordinator crashes": {func(w *World) { w.At(40*time.Second, w.Nodes()[0].Crash) }, without("n1")},
		"the coordinator loses":   {func(w *World) { w.At(40*time.Second, func() { w.Partition([]int{0, 1}, []int{2, 3, 4}) }) }, without("n1", "n2")},
		"the coordinator wins":    {func(w *World) { w.At(40*time.Second, func() { w.Partition([]int{0, 1, 2}, []int{3, 4}) }) }, without("n4", "n5")},
		"the coordinator sleeps":  {func(w *World) { w.At(40*time.Second, func() { w.Nodes()[0].Pause(3 * time.Minute) }) }, without("n1")},
		"the coordinator naps":    {func(w *World) { w.At(40*time.Second, func() { w.Nodes()[0].Pause(3 * time.Second) }) }, all},
		"another one crashes":     {func(w *World) { w.At(40*time.Second, w.Nodes()[2].Crash) }, without("n3")},
		"two leave, one of them back": {func(w *World) {
			w.At(40*time.Second, w.Nodes()[0].Leave)
			w.At(41*time.Second, w.Nodes()[1].Leave)
			w.At(2*time.Minute, w.Nodes()[0].Restart)
		}, without("n2")},
	} {
		for _, lease := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", name, lease), func(t *testing.T) {
				for seed := range uint64(3) {
					w := sharded(t, seed, lease, nil, tc.play)
					w.Run(10 * time.Minute)
					require.Empty(t, w.Finish(), "%s", w.Story())
					for _, on := range hosts(t, w) {
						require.Contains(t, tc.on, on)
					}
				}
			})
		}
	}
}

// A manager that is closed hands its shards over, and the one that the same process opens then is given some again.
func TestShards_ReopenedManager(t *testing.T) {
	for seed := range uint64(6) {
		w := sharded(t, seed, seed%2 == 0, func(o *Options) { o.Shards[0].ReopensAfter = time.Minute }, nil)
		w.Run(10 * time.Minute)
		require.Empty(t, w.Finish())
		o := w.Shards()[0]
		require.Greater(t, o.Coordinators, 2, "whoever coordinates is closed as well")
		require.Greater(t, o.HandedOver, 6)
	}
}

// A member without the role runs nothing, and knows who does.
func TestShards_Role(t *testing.T) {
	w := sharded(t, 1, false, func(o *Options) {
		o.Shards[0].Role = "db"
		o.Members = []NodeOptions{{}, {Roles: []string{"db"}}, {Roles: []string{"db"}}, {Roles: []string{"db"}}, {}}
	}, nil)
	w.Run(5 * time.Minute)
	require.Empty(t, w.Finish())
	require.Subset(t, []string{"n2", "n3", "n4"}, hosts(t, w))
	require.NotEqual(t, message.Nobody, w.nodes[0].proc.shardHosts[0].table.Of(3))
}

// Each promise about shards can be broken, and is then named.
func TestShardChecks_CanFail(t *testing.T) {
	hostOn := func(w *World, i int) *shardHost { return w.nodes[i].proc.shardHosts[0] }
	// runner is where the first shard runs, other is another one.
	runner := func(w *World) *executor { return w.shards[0].slots[0].live[0].executor }
	other := func(w *World) *executor {
		for i := range w.nodes {
			if b := &hostOn(w, i).executors[0]; b.run == nil {
				return b
			}
		}
		return nil
	}
	for name, tc := range map[string]struct {
		promise string
		lease   bool
		harm    func(w *World)
	}{
		"a second run elsewhere": {"Y1", false, func(w *World) {
			other(w).start(core.Start{Run: 1, Token: 1 << 60})
			w.shards[0].look()
		}},
		"a second run on the same member": {"Y1", false, func(w *World) { runner(w).start(core.Start{Run: 2, Token: 1 << 60}) }},
		"a run that was handed over before it had ended": {"Y1", false, func(w *World) {
			other(w).start(core.Start{Run: 1, Token: 1 << 60, From: runner(w).p.id})
		}},
		"a token that does not grow, with a lease":  {"Y2", true, func(w *World) { other(w).start(core.Start{Run: 1, Token: 1}) }},
		"a token that does not grow, handed over":   {"Y2", false, func(w *World) { other(w).start(core.Start{Run: 1, Token: 1, From: runner(w).p.id}) }},
		"a token that does not grow, on one member": {"Y2", false, func(w *World) { runner(w).start(core.Start{Run: 2, Token: 1}) }},
		"the state of another run":                  {"Y2", true, func(w *World) { other(w).start(core.Start{Run: 1, Token: 100, State: []byte("7")}) }},
		"an older write after a newer one": {"Y3", true, func(w *World) {
			older, x := runner(w).run, w.shards[0].slots[0]
			b := other(w)
			b.start(core.Start{Run: 1, Token: 1})
			x.resource.take(x, b.run)
			x.resource.take(x, older)
		}},
		"a newer write is refused": {"Y3", true, func(w *World) {
			x, b := w.shards[0].slots[0], other(w)
			x.resource.take(x, runner(w).run)
			b.start(core.Start{Run: 1})
			x.resource.take(x, b.run)
		}},
		"one of them does not run": {"Y4", false, func(w *World) {
			runner(w).run.cease()
			w.Run(w.now + 10*time.Minute)
		}},
		"one runs where it should not": {"Y4", false, func(w *World) {
			r := runner(w).run
			for _, n := range w.nodes {
				n.proc.shardHosts[0].stage = hostClosed
			}
			require.False(t, r.over)
			w.Run(w.now + 10*time.Minute)
		}},
		"one that nobody knows of": {"Y4", false, func(w *World) {
			r := runner(w).run
			to := other(w)
			r.executor.run, r.executor, to.run = nil, to, r
			w.Run(w.now + 10*time.Minute)
		}},
		"one moves for ever": {"Y4", false, func(w *World) {
			w.Run(w.now + 10*time.Minute)
			from := runner(w).p.id
			runner(w).run.cease()
			other(w).start(core.Start{Run: 1, Token: 1 << 60, From: from})
		}},
		"a downed member goes on": {"Y5", false, func(w *World) { runner(w).downed() }},
		"a downed member starts": {"Y5", false, func(w *World) {
			b := other(w)
			b.p.downReason = "by hand"
			b.start(core.Start{Run: 1, Token: 1 << 60})
		}},
		"an answer to nothing": {"Y6", false, func(w *World) {
			hostOn(w, 1).carryOut(hostMachine, []core.Effect{core.Answer[message.Message]{Ref: 7000}})
		}},
		"a stop of what runs no more": {"Y6", false, func(w *World) { other(w).stop(9, "") }},
		"too long a message": {"Y6", false, func(w *World) {
			m := message.Message{Kind: message.HandedOver}
			for i := range 3 {
				m.Handed = append(m.Handed, message.Handed{Shard: i, Number: 1, State: make([]byte, message.MaxState)})
			}
			hostOn(w, 1).written(&m)
		}},
		"a coordinator without a term": {"Y6", false, func(w *World) {
			t := hostOn(w, 1)
			t.coordinate(&run{executor: &t.executors[0]})
			w.Run(w.now + time.Second)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := sharded(t, 1, tc.lease, nil, nil)
			w.Run(2 * time.Minute)
			hosts(t, w)
			require.Empty(t, w.Violations())
			tc.harm(w)
			promises := make([]string, 0, len(w.Violations()))
			for _, v := range w.Violations() {
				promises = append(promises, v.Promise)
			}
			require.Contains(t, promises, tc.promise)
		})
	}
}

// A write that was in the hand of a run that slept is kept out by the fence, and would have done harm without it.
func TestShards_FenceKeepsOutWhoWakesUp(t *testing.T) {
	rejected, interleaved := 0, 0
	for seed := range uint64(12) {
		w := sharded(t, seed, seed%2 == 0, nil, func(w *World) { w.At(40*time.Second, func() { w.Nodes()[seed%5].Pause(4 * time.Minute) }) })
		w.Run(10 * time.Minute)
		require.Empty(t, w.Finish())
		o := w.Shards()[0]
		rejected += o.Rejected
		interleaved += o.Interleaved
	}
	require.Positive(t, rejected)
	require.Positive(t, interleaved)
}

// What is left unsaid is refused, as for slots.
func TestShards_Refused(t *testing.T) {
	for name, change := range map[string]func(o *Options){
		"without a type": func(o *Options) { o.Shards[0].Name = "" },
		"twice":          func(o *Options) { o.Shards = append(o.Shards, o.Shards[0]) },
		"none":           func(o *Options) { o.Shards[0].Count = 0 },
		"too many":       func(o *Options) { o.Shards[0].Count = message.MaxShards + 1 },
		"no writes":      func(o *Options) { o.Shards[0].WritesEvery = 0 },
		"no retries":     func(o *Options) { o.Shards[0].NumberOfRetries = 0 },
		"backwards":      func(o *Options) { o.Shards[0].ReopensAfter = -1 },
	} {
		o := sharded(t, 1, false, nil, nil).opts
		o.Members = nil
		change(&o)
		_, err := New(o)
		require.Error(t, err, name)
	}
	require.Empty(t, healthy(t, nil).Shards())
}

// Shards that go to a member that comes, and come back when it crashes, begin with what the last run has left, or with nothing.
func TestShards_StateIsThatOfTheLastRun(t *testing.T) {
	handed := 0
	for seed := range uint64(6) {
		w := sharded(t, seed, seed%2 == 0, nil, func(w *World) {
			n := w.Nodes()[2]
			for i := range 3 {
				start := time.Duration(i) * 4 * time.Minute
				w.At(start+time.Minute, n.Crash)
				w.At(start+3*time.Minute, n.Restart)
			}
		})
		w.Run(16 * time.Minute)
		require.Empty(t, w.Finish())
		handed += w.Shards()[0].HandedOver
	}
	require.Greater(t, handed, 10)
}
