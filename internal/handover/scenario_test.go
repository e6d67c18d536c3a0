package handover_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func useLease(c *handover.Config) { c.UseLease = true }

// scenario is a story: its sentence and what happens in it. What the members say and do is in testdata.
type scenario struct {
	name, sentence string
	tell           func(t *testing.T) (w *world, running []sbr.ID)
}

var scenarios = []scenario{
	{"FirstStart", "A member alone starts at once, under the first token of the newest verdict.", func(t *testing.T) (*world, []sbr.ID) {
		w := newWorld(t, 1, nil)
		w.verdict = 2
		w.begin()
		return w, []sbr.ID{"a"}
	}},
	{"Formation", "Members that form a cluster all want the slot; as they learn of each other, the oldest gets it and the others run nothing meanwhile.", func(t *testing.T) (*world, []sbr.ID) {
		w := newWorld(t, 3, nil)
		all := w.everybody()
		w.member("b").peers = all[1:]
		w.member("c").peers = all[1:]
		w.member("a").peers = nil // not armed yet
		w.member("a").mute, w.member("b").mute = true, true
		w.begin()
		w.say("the network comes up")
		w.member("a").mute, w.member("b").mute = false, false
		for _, m := range w.members {
			m.peers = all
		}
		w.pass(3 * time.Second)
		return w, []sbr.ID{"a"}
	}},
	{"PlannedHandOver", "An older member that joins takes over: the run stops, its state travels, the next one starts. The gap is one answer.", func(t *testing.T) (*world, []sbr.ID) {
		w := newWorld(t, 2, nil)
		a := w.member("a")
		all := w.everybody()
		a.peers, w.member("b").peers = nil, all[1:]
		w.begin()
		w.pass(5 * time.Second)
		w.say("a is armed")
		a.peers, w.member("b").peers = all, all
		w.begin()
		return w, []sbr.ID{"a"}
	}},
	{"SlowStop", "A run that takes long to stop holds everybody up; its member answers the newest of the questions that were repeated meanwhile.", func(t *testing.T) (*world, []sbr.ID) {
		w := newWorld(t, 2, nil)
		all := w.everybody()
		w.member("a").peers, w.member("b").peers = nil, all[1:]
		w.member("b").slow = true
		w.begin()
		w.member("a").peers, w.member("b").peers = all, all
		w.begin()
		w.pass(4500 * time.Millisecond)
		require.Equal(t, []sbr.ID{"b"}, w.running())
		w.end("b", slot.RunEnded{State: []byte("at last")})
		return w, []sbr.ID{"a"}
	}},
	{"HolderResigns", "The holder's manager is stopped: the next member asks for the slot, and gets it with its state. The old holder runs nothing any more.", func(t *testing.T) (*world, []sbr.ID) {
		w := newWorld(t, 3, nil)
		w.begin()
		w.step("a", slot.Resign{Patience: 3 * time.Second})
		w.pass(2 * time.Second)
		require.True(t, w.member("a").m.Finished())
		return w, []sbr.ID{"b"}
	}},
	{"NobodyTakesOver", "The holder resigns and the only other member does not answer: it stops when its patience is over.", func(t *testing.T) (*world, []sbr.ID) {
		w := newWorld(t, 2, nil)
		w.begin()
		w.member("b").mute = true
		w.step("a", slot.Resign{Patience: 2 * time.Second})
		w.pass(3 * time.Second)
		require.True(t, w.member("a").m.Finished())
		return w, nil
	}},
	{"HolderLeaves", "The holder's node leaves without a word to its manager: that is resigning, too, and its departure costs no margin.", func(t *testing.T) (*world, []sbr.ID) {
		w := newWorld(t, 3, nil)
		w.begin()
		w.see("a", leaving)
		w.see("a", nil)
		return w, []sbr.ID{"b"}
	}},
	{"Crash", "The holder crashes: nothing starts before it was downed and the removal margin is over, also if it is removed from the list meanwhile.", func(t *testing.T) (*world, []sbr.ID) {
		w := newWorld(t, 3, nil)
		w.begin()
		w.pass(10 * time.Second)
		w.crash("a")
		w.see("a", unreachable)
		w.pass(20 * time.Second)
		w.say("a verdict downs a")
		w.verdict = 1
		w.see("a", down)
		w.pass(15 * time.Second)
		w.say("a is removed")
		w.see("a", nil)
		require.Empty(t, w.running())
		w.pass(5*time.Second + 1)
		return w, []sbr.ID{"b"}
	}},
	{"OthersRememberTheMargin", "A member that joined after a crash knows nothing of it; the others tell it how long to wait.", func(t *testing.T) (*world, []sbr.ID) {
		w := newWorld(t, 2, nil)
		w.begin()
		w.crash("a")
		w.see("a", nil)
		w.pass(5 * time.Second)
		old := w.join("0", 1, nil)
		w.say("0 joins: its clock is behind, it is the oldest")
		w.member("b").peers = w.everybody()[1:]
		old.peers = w.member("b").peers
		w.begin()
		require.Empty(t, w.running())
		w.pass(15*time.Second + 1)
		return w, []sbr.ID{"0"}
	}},
	{"Partition", "The holder is cut off alone. It stops when it has not been sure of its place for too long; the others start after the verdict and the margin.", func(t *testing.T) (*world, []sbr.ID) {
		w := newWorld(t, 3, nil)
		w.begin()
		w.pass(time.Second)
		w.say("a is cut off")
		a := w.member("a")
		a.cutFrom = []sbr.ID{"b", "c"}
		for _, m := range w.members {
			m.sure = false
		}
		w.see("a", unreachable, "b", "c")
		w.see("b", unreachable, "a")
		w.see("c", unreachable, "a")
		w.pass(20 * time.Second)
		w.say("a verdict downs a; a does not hear of it")
		w.verdict = 1
		w.member("b").sure, w.member("c").sure = true, true
		w.see("a", down, "b", "c")
		w.pass(19 * time.Second)
		require.Empty(t, w.running())
		w.pass(1*time.Second + 1)
		return w, []sbr.ID{"b"}
	}},
	{"HealWithoutVerdict", "A short cut heals before anybody decides: the holder goes on, and nobody else starts.", func(t *testing.T) (*world, []sbr.ID) {
		w := newWorld(t, 3, nil)
		w.begin()
		a := w.member("a")
		a.cutFrom = []sbr.ID{"b", "c"}
		w.see("a", unreachable, "b", "c")
		w.pass(10 * time.Second)
		w.say("healed")
		a.cutFrom = nil
		w.see("a", reachable, "b", "c")
		w.pass(10 * time.Second)
		return w, []sbr.ID{"a"}
	}},
	{"LeaseLost", "The lease is lost: the run is stopped, has ended, the lease is given back, asked for again, and the run starts again.", func(t *testing.T) (*world, []sbr.ID) {
		w := newWorld(t, 2, useLease)
		w.begin()
		w.member("a").slow = true
		w.expire("its store was not reached for too long")
		w.pass(10 * time.Second)
		w.end("a", slot.RunEnded{State: []byte("here was I")})
		return w, []sbr.ID{"a"}
	}},
	{"LeaseHandOver", "With a lease the holder answers only once the lease is given back, so the next one gets it at once.", func(t *testing.T) (*world, []sbr.ID) {
		w := newWorld(t, 2, useLease)
		w.begin()
		w.step("a", slot.Resign{Patience: 3 * time.Second})
		return w, []sbr.ID{"b"}
	}},
	{"LeaseDecidesOverTheSilent", "With a lease, a member that does not answer is left to the lease after the last try; it is still asked afterwards.", func(t *testing.T) (*world, []sbr.ID) {
		w := newWorld(t, 3, useLease)
		w.member("c").mute = true
		w.begin()
		w.pass(4 * time.Second)
		return w, []sbr.ID{"a"}
	}},
	{"LeaseStoreSilent", "A lease store that does not answer grants nothing: nothing starts, and it is asked again each lease-retry-interval.", func(t *testing.T) (*world, []sbr.ID) {
		w := newWorld(t, 2, useLease)
		w.member("a").unknown = true
		w.begin()
		w.pass(11 * time.Second)
		require.Empty(t, w.running())
		w.member("a").unknown = false
		w.pass(5 * time.Second)
		return w, []sbr.ID{"a"}
	}},
	{"SilentWithoutLease", "Without a lease a member that never answers stops everybody: that is said loudly, and it is asked on.", func(t *testing.T) (*world, []sbr.ID) {
		w := newWorld(t, 3, nil)
		w.member("c").mute = true
		w.begin()
		w.pass(4 * time.Second)
		return w, nil
	}},
	{"Unserved", "A member without a manager says so, and that is consent: nothing of the slot runs there.", func(t *testing.T) (*world, []sbr.ID) {
		w := newWorld(t, 3, nil)
		w.member("c").m = nil
		w.begin()
		return w, []sbr.ID{"a"}
	}},
	{"OlderNewcomer", "A newcomer whose clock is behind counts as the oldest and takes over in good order.", func(t *testing.T) (*world, []sbr.ID) {
		w := newWorld(t, 2, nil)
		w.begin()
		w.pass(time.Minute)
		w.join("z", 1, nil)
		for _, m := range w.members {
			m.peers = w.everybody()
		}
		w.begin()
		return w, []sbr.ID{"z"}
	}},
	{"Merge", "Two clusters that never heard of each other each run the slot. When they meet the older run goes on and the younger one stops.", func(t *testing.T) (*world, []sbr.ID) {
		w := newWorld(t, 4, nil)
		all := w.everybody()
		for i, m := range w.members {
			m.peers = all[i/2*2 : i/2*2+2]
			m.cutFrom = []sbr.ID{all[(i/2*2+2)%4].ID, all[(i/2*2+3)%4].ID}
		}
		w.begin()
		require.Equal(t, []sbr.ID{"a", "c"}, w.running())
		w.say("the clusters merge")
		for _, m := range w.members {
			m.cutFrom, m.peers = nil, all
		}
		w.begin()
		return w, []sbr.ID{"a"}
	}},
	{"Downed", "Downed, a member stops before anything else, and never starts again.", func(t *testing.T) (*world, []sbr.ID) {
		w := newWorld(t, 2, nil)
		w.begin()
		w.step("a", slot.Downed{Why: "verdict 1 does not list it"})
		w.pass(time.Minute)
		require.True(t, w.member("a").m.Finished())
		return w, nil
	}},
	{"Unsure", "Without a lease a run ends when its member has not been sure of its place for Trust, and starts again once it is.", func(t *testing.T) (*world, []sbr.ID) {
		w := newWorld(t, 2, nil)
		w.begin()
		w.member("a").sure = false
		w.pass(time.Minute)
		require.Empty(t, w.running())
		w.say("a is sure again")
		w.member("a").sure = true
		w.pass(time.Second)
		return w, []sbr.ID{"a"}
	}},
	{"Again", "A run that ends by itself and wants to go on starts again here after its pause, with its own state; nobody takes over meanwhile.", func(t *testing.T) (*world, []sbr.ID) {
		w := newWorld(t, 2, nil)
		w.begin()
		w.end("a", slot.RunEnded{Again: true, Rest: 3 * time.Second, State: []byte("page 7"), Why: "the database is away"})
		w.pass(2 * time.Second)
		require.Empty(t, w.running())
		w.pass(2 * time.Second)
		return w, []sbr.ID{"a"}
	}},
	{"Done", "A run that ends by itself for good is handed over all the same: the next member starts, with its state.", func(t *testing.T) (*world, []sbr.ID) {
		w := newWorld(t, 2, nil)
		w.begin()
		w.end("a", slot.RunEnded{State: []byte("all but page 9")})
		w.pass(time.Second)
		return w, []sbr.ID{"b"}
	}},
	{"HandOverWhileResting", "A member whose run rests hands over at once.", func(t *testing.T) (*world, []sbr.ID) {
		w := newWorld(t, 2, nil)
		w.begin()
		w.end("a", slot.RunEnded{Again: true, Rest: time.Hour, State: []byte("page 7")})
		z := w.join("z", 1, nil)
		z.peers, w.member("a").peers, w.member("b").peers = w.everybody(), w.everybody(), w.everybody()
		w.begin()
		return w, []sbr.ID{"z"}
	}},
	{"StateTooLarge", "State that does not fit is left out, and that is said.", func(t *testing.T) (*world, []sbr.ID) {
		w := newWorld(t, 2, nil)
		w.begin()
		w.member("a").left = strings.Repeat("x", slot.MaxState+1)
		w.step("a", slot.Resign{Patience: time.Second})
		return w, []sbr.ID{"b"}
	}},
	{"QuitterComesBack", "A member that resigned starts a manager again: it takes the slot back, and when it crashes its margin counts again.", func(t *testing.T) (*world, []sbr.ID) {
		w := newWorld(t, 2, nil)
		w.begin()
		w.step("a", slot.Resign{Patience: time.Second})
		w.say("a starts another manager")
		a := w.member("a")
		a.cfg.FirstRound = 1000
		var err error
		a.m, err = handover.New(a.cfg, w.now)
		require.NoError(t, err)
		w.begin()
		require.Equal(t, []sbr.ID{"a"}, w.running())
		w.crash("a")
		w.see("a", nil)
		w.pass(19 * time.Second)
		require.Empty(t, w.running())
		w.pass(time.Second + 1)
		return w, []sbr.ID{"b"}
	}},
}

func TestScenario(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			w, running := s.tell(t)
			require.Equal(t, running, w.running(), "%s", w.trace.String())
			w.golden(s.sentence)
		})
	}
}
