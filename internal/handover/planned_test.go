package handover_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// hop is how long everything takes in the stories of TestPlanned.
const hop = 5 * time.Millisecond

// story is a planned change, on the members o, a, b and c, of which o has no manager and a runs the slot: its
// sentence, what happens, and where the slot runs in the end.
type story struct {
	name, sentence string
	tell           func(p *planned)
	running        sbr.ID
}

var stories = []story{
	{"ManagerStopped", "The holder's manager is stopped.", func(p *planned) {
		p.resign("a")
	}, "b"},
	{"NodeLeaves", "The holder's node leaves, and its manager was not stopped before.", func(p *planned) {
		p.leave("a")
	}, "b"},
	{"OneAfterTheOther", "A member leaves that does not run the slot: it says so, and costs no margin when the holder leaves soon after.", func(p *planned) {
		p.leave("b")
		p.pass(1500 * time.Millisecond)
		p.leave("a")
	}, "c"},
	{"TwoAtOnce", "The holder and the one after it leave at the same moment.", func(p *planned) {
		p.resign("a")
		p.resign("b")
	}, "c"},
	{"TakerLeaves", "The holder's manager is stopped, and that of the one that takes over right after it has asked for the slot: it runs it, and hands it on.", func(p *planned) {
		p.resign("a")
		p.until(func() bool { return len(p.running()) == 0 })
		p.resign("b")
	}, "c"},
	{"OlderAttaches", "The holder has a successor already when an older member gets a manager: the successor runs the slot, and hands it over at once.", func(p *planned) {
		p.resign("a")
		p.until(func() bool { return p.node("a").m.Phase() == slot.Stopping })
		p.attach("o")
	}, "o"},
	{"OlderComesBack", "The holder gets another manager at once.", func(p *planned) {
		p.resign("a")
		p.until(func() bool { return p.node("a").m == nil })
		p.attach("a")
	}, "a"},
	{"OlderComesAndGoes", "An older member gets a manager and loses it again while the holder is there: nobody waits for it when the holder goes.", func(p *planned) {
		p.attach("o")
		p.pass(hop)
		p.resign("o")
		p.resign("a")
	}, "b"},
}

// Between two runs is one answer. With a lease there are two requests and their answers as well: it is given
// back before, and asked for after that; and where it was asked for already, that has to be given up.
func TestPlanned(t *testing.T) {
	for _, s := range stories {
		for _, lease := range []bool{false, true} {
			name, most := s.name, hop
			if lease {
				name, most = name+"WithLease", 7*hop
			}
			t.Run(name, func(t *testing.T) {
				p := newPlanned(t, lease, func() time.Duration { return hop })
				p.add("oabc")
				p.attach("a", "b", "c")
				p.pass(5 * time.Second)
				require.Equal(t, []sbr.ID{"a"}, p.running())
				p.trace.Reset()
				s.tell(p)
				p.pass(5 * time.Second)
				require.Equal(t, []sbr.ID{s.running}, p.running(), "%s\n%s", s.sentence, &p.trace)
				require.LessOrEqual(t, slices.Max(p.gaps), most, "%s", &p.trace)
			})
		}
	}
}

// most is how many moments pass at most until the slot runs again, after the last run has ended and the last
// change of who could run it.
const most = 8

// Whatever members join, leave, start and stop managers, in whatever order all hear of it: as long as nothing
// goes wrong, no rule's pause is in the way.
func TestProperty_PlannedGap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const moment = 10 * time.Millisecond
		chance := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "times"), 0))
		p := newPlanned(t, rapid.Bool().Draw(t, "lease"), func() time.Duration {
			return time.Millisecond + time.Duration(chance.Int64N(int64(moment-time.Millisecond)))
		})
		p.add("abcd"[:rapid.IntRange(2, 4).Draw(t, "members")])
		for _, n := range p.nodes {
			if rapid.IntRange(0, 3).Draw(t, "without") > 0 {
				p.attach(n.id)
			}
		}
		p.pass(3 * time.Second)
		later := "efgh"
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			p.pass(time.Duration(rapid.SampledFrom([]int{0, 0, 3, 10, 20, 30, 50, 200, 2000}).Draw(t,
				"after")) * time.Millisecond)
			n := p.nodes[rapid.IntRange(0, len(p.nodes)-1).Draw(t, "who")]
			switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
			case n.left || what == 0 && later != "":
				if later != "" {
					p.join(sbr.ID(later[:1]), rapid.Int64Range(0, 9).Draw(t, "born")*int64(time.Second)+int64(len(later)))
					later = later[1:]
				}
			case n.m == nil && !n.fact.Leaving:
				p.attach(n.id)
			case n.m == nil || n.resigned || p.now-n.since < 3*moment:
			case what == 1:
				p.leave(n.id)
			case what == 2:
				p.done(n.id, rapid.Bool().Draw(t, "again"))
			case what < 8:
				p.resign(n.id)
			}
		}
		p.pass(40 * time.Second)
		require.LessOrEqual(t, p.longest, most*moment, "%s", &p.trace)
	})
}

// A question is gossiped, which takes long; its answer is not. Beside a member that could run the slot all
// the time, at most one is waited for while nobody runs it, whatever the others do: several stop, start
// again, leave, in the middle of each other's changes.
func TestProperty_PlannedGapBesideOneThatStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const moment, question = 10 * time.Millisecond, 200 * time.Millisecond
		chance := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "times"), 0))
		between := func(least, most time.Duration) time.Duration {
			return least + time.Duration(chance.Int64N(int64(most-least)))
		}
		p := newPlanned(t, rapid.Bool().Draw(t, "lease"),
			func() time.Duration { return between(time.Millisecond, moment) })
		p.gossip, p.steady = func() time.Duration { return between(question/10, question) }, true
		p.add("abcd"[:rapid.IntRange(2, 4).Draw(t, "members")])
		for _, n := range p.nodes {
			p.attach(n.id)
		}
		p.pass(3 * time.Second)
		p.longest = 0
		stays := p.nodes[rapid.IntRange(0, len(p.nodes)-1).Draw(t, "stays")]
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			p.pass(time.Duration(rapid.SampledFrom([]int{0, 0, 3, 10, 30, 50, 100, 200, 500}).Draw(t,
				"after")) * time.Millisecond)
			switch n := p.nodes[rapid.IntRange(0, len(p.nodes)-1).Draw(t, "who")]; {
			case n == stays || n.left:
			case n.m == nil && !n.fact.Leaving:
				p.attach(n.id)
			case n.m == nil || n.resigned || p.now-n.since < 3*moment:
			case n.running && rapid.Bool().Draw(t, "leaves"):
				p.leave(n.id)
			default:
				p.resign(n.id)
			}
		}
		p.pass(20 * time.Second)
		require.LessOrEqual(t, p.longest, question+most*moment, "%s", &p.trace)
	})
}
