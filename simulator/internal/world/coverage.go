package world

import (
	"fmt"
	"slices"
	"strings"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Coverage counts the transitions that resolvers take in worlds that are given it (Options.Coverage). A
// transition is the state before a step, the event, the state after it, and the kinds of effects that the
// step returned. Chores (telling others what was decided, removing downed members, releasing the lease) are
// left out where a step does something else as well: that there is somebody to tell or to remove at the same
// moment says nothing of the resolver. Counting changes nothing in a run.
//
// The zero Coverage is ready for use. It is not safe for concurrent use: give each goroutine its own, and Add
// them up.
type Coverage struct {
	counts map[transition]uint64
}

// transition is one kind of step, small and comparable, for it is noted at every step.
type transition struct {
	before, after sbr.State
	event         string
	does          doings
}

// doings is a set of kinds of effects.
type doings uint32

// deadline is the word for a step without an event. A step that changes and wants nothing is no transition.
const deadline = "Deadline"

// The words for effects, in the order in which they are written; a topic is that of an Explain.
var (
	effectWords = []string{
		"ReadLease", "AcquireLease", "ReleaseLease", "TellVerdict", "TellOrder", "AskToRace", "AskStanding", "Remove", "Suspend",
		"Resume", "DownSelf", "AnswerDownRequest", "RestoreVerdict", "RecordLeave",
	}
	topics = []sbr.Topic{
		sbr.TopicArmed, sbr.TopicDecision, sbr.TopicLease, sbr.TopicVerdict, sbr.TopicHealed, sbr.TopicIgnored,
		sbr.TopicPaused,
		sbr.TopicTiming, sbr.TopicBackwards, sbr.TopicConflict,
	}
)

// chores follow from what was done before.
var chores = doing(sbr.TellVerdict{}) | doing(sbr.TellOrder{}) | doing(sbr.Remove{}) | doing(
	sbr.ReleaseLease{})

// String says a transition in sbr's own words: "up + Reachability(unreachable) -> suspended: Suspend".
func (t transition) String() string {
	var does []string
	for i, word := range effectWords {
		if t.does&(1<<i) != 0 {
			does = append(does, word)
		}
	}
	for i, topic := range topics {
		if t.does&(1<<(len(effectWords)+i)) != 0 {
			does = append(does, "Explain("+string(topic)+")")
		}
	}
	s := string(t.before) + " + " + t.event + " -> " + string(t.after)
	if len(does) > 0 {
		s += ": " + strings.Join(does, ", ")
	}
	return s
}

// Counts returns how often each transition was taken.
func (c *Coverage) Counts() map[string]uint64 {
	all := make(map[string]uint64, len(c.counts))
	for t, n := range c.counts {
		all[t.String()] = n
	}
	return all
}

// Len is how many different transitions were taken.
func (c *Coverage) Len() int { return len(c.counts) }

// Add adds the counts of other.
func (c *Coverage) Add(other *Coverage) {
	for t, n := range other.counts {
		c.add(t, n)
	}
}

func (c *Coverage) add(t transition, n uint64) {
	if c.counts == nil {
		c.counts = make(map[transition]uint64)
	}
	c.counts[t] += n
}

// covered is the checker that notes the transitions of one world.
type covered struct {
	unchecked
	to     *Coverage
	event  sbr.Event   // of the step that is being taken; nil: a deadline
	before []sbr.State // by process, what it was after its last step
}

func (c *covered) took(_ *World, _ *process, e sbr.Event) { c.event = e }

func (c *covered) stepped(_ *World, p *process, effects []sbr.Effect) {
	for len(c.before) <= p.index {
		c.before = append(c.before, sbr.StateArming)
	}
	t := transition{before: c.before[p.index], after: p.r.State(), event: eventWord(c.event)}
	for _, e := range effects {
		t.does |= doing(e)
	}
	if main := t.does &^ chores; main != 0 {
		t.does = main
	}
	c.event, c.before[p.index] = nil, t.after
	if t.event != deadline || t.before != t.after || t.does != 0 {
		c.to.add(t, 1)
	}
}

// doing is the place of an effect in the set.
func doing(e sbr.Effect) doings {
	if x, ok := e.(sbr.Explain); ok {
		return place(topics, x.What, len(effectWords))
	}
	return place(effectWords, typeName(e), 0)
}

func place[T comparable](words []T, word T, after int) doings {
	i := slices.Index(words, word)
	if i < 0 {
		panic(fmt.Sprintf("world: coverage has no word for %v", word)) // a new kind: add it to the list
	}
	return 1 << (after + i)
}

// typeName is the name of a type of sbr: of an effect, or of an event that has no more to say.
func typeName(v any) string { return strings.TrimPrefix(fmt.Sprintf("%T", v), "sbr.") }

// eventWord is the word for an event, with what the resolver tells apart in it.
func eventWord(e sbr.Event) string {
	switch e := e.(type) {
	case nil:
		return deadline
	case sbr.MemberSeen:
		return either(e.Member.Status == sbr.Leaving, "MemberSeen(leaving)", "MemberSeen")
	case sbr.Reachability:
		return either(e.Unreachable, "Reachability(unreachable)", "Reachability(reachable)")
	case sbr.LeaseAnswer:
		return answerWords[e.Outcome]
	case sbr.LeaseRead:
		return either(e.Err == "", "LeaseRead", "LeaseRead(failed)")
	case sbr.LeaseReleased:
		return either(e.Done, "LeaseReleased", "LeaseReleased(not done)")
	case sbr.Told:
		return either(e.Verdict.Partial, "Told(partial)", "Told")
	default:
		return typeName(e)
	}
}

var answerWords = [...]string{
	sbr.Unknown: "LeaseAnswer(unknown)", sbr.Granted: "LeaseAnswer(granted)", sbr.Held: "LeaseAnswer(held)",
}

func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}
