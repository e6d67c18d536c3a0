package linear

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// action is what a client did, or what may have happened behind its back.
type action uint8

const (
	// acquire, release, read and look (Check and Token) are calls that have returned.
	acquire action = iota
	release
	read
	look
	// lost is the end of a grant that its owner has not asked for.
	lost
	// lateGrant is a grant nobody was told of. lateFree is the undoing of one, or a release nobody was told
	// of.
	lateGrant
	lateFree
	// end is the end of the history: what has not happened before it never happened.
	end
)

// set is a set of clients.
type set uint64

func (s set) within(o set) bool { return s&^o == 0 }

// input is a call.
type input struct {
	action action
	who    string
	// nonce marks the writes of an acquire, or names the grant that a lateFree frees.
	nonce string
	// verdict says that an acquire carries one, which builds on base.
	verdict   bool
	base      uint64
	survivors set
	// sent says that a release has sent a write that frees the lease.
	sent bool
	// reason is why a lease was lost, for people.
	reason string
}

// output is an answer. What is shown is zero where the answer shows nothing.
type output struct {
	kind       sbr.Outcome
	released   released
	superseded bool
	shown      record
	// token is that of look, zero when Check is false.
	token uint64
}

// released is what a Release has answered.
type released uint8

const (
	releaseUnknown released = iota
	wasReleased
	notHeld
)

func (r released) String() string { return [...]string{"release-unknown", "released", "not-held"}[r] }

// record is the part of lease.Record that the model knows.
type record struct {
	holder, nonce  string
	token, verdict uint64
	survivors      set
}

// belief is what the holder's own Check may say.
type belief uint8

const (
	no belief = iota
	yes
	maybe
)

// state is one lease. since is the token under which the present holder began to hold, answers the number of
// answers so far that show the present token.
type state struct {
	record
	since   uint64
	belief  belief
	answers int
	ended   bool
}

// tokenShown is what the answers of a history show of one token: its grant, and how many show it.
type tokenShown struct {
	nonce   string
	answers int
}

// shownIn collects the tokens that the answers of a history show.
func shownIn(ops []porcupine.Operation) map[uint64]tokenShown {
	shown := map[uint64]tokenShown{}
	for _, op := range ops {
		if in, out := op.Input.(input), op.Output.(output); showsState(in, out) {
			shown[out.shown.token] = tokenShown{out.shown.nonce, shown[out.shown.token].answers + 1}
		}
	}
	return shown
}

// showsState tells whether an answer shows the lease as it was when the call took place. One that was
// re-entered may know less than the store.
func showsState(in input, out output) bool {
	return in.action == read ||
		in.action == acquire && (out.kind != sbr.Granted || out.shown.nonce == in.nonce)
}

// model is the sequential lease, for a history with these answers (nil: any). With expiring a holder may be
// replaced, or lose, at any time, as time is no part of it; what then must not be is that its Check says yes.
func model(expiring bool, shown map[uint64]tokenShown) porcupine.Model {
	m := rules{expiring, shown}
	return porcupine.Model{
		Init: func() any { return state{} },
		Step: func(s, in, out any) (bool, any) {
			next, ok := m.step(s.(state), in.(input), out.(output))
			return ok, next
		},
		DescribeOperation: func(in, out any) string { return describe(in.(input), out.(output)) },
		DescribeState:     func(s any) string { return s.(state).String() },
	}
}

type rules struct {
	expiring bool
	shown    map[uint64]tokenShown
}

func (m rules) step(s state, in input, out output) (state, bool) {
	if s.ended {
		return s, true
	}
	next, ok := m.next(s, in, out)
	if next.token != s.token {
		ok = ok && m.leaves(s, next)
		next.answers = 0
	}
	if showsState(in, out) {
		next.answers++
	}
	return next, ok
}

// leaves tells whether the lease can go from s to a next token: each answer that shows the token of s has been
// given, and nobody saw the next token with another grant. It forbids only what no later step could explain.
// Without it the search finds that out anew for each order of the grants in doubt, which may take for ever.
func (m rules) leaves(s, next state) bool {
	if m.shown == nil {
		return true
	}
	after, seen := m.shown[next.token]
	return s.answers == m.shown[s.token].answers && (!seen || after.nonce == next.nonce)
}

func (m rules) next(s state, in input, out output) (state, bool) {
	switch in.action {
	case acquire:
		return m.acquired(s, in, out)
	case release:
		return m.released(s, in, out)
	case read:
		return s, out.shown == s.record
	case look:
		return s, m.looked(s, in, out)
	case lost:
		return s, m.expiring
	case lateGrant:
		return s.granted(in, no), m.may(s, in)
	case lateFree:
		mine := s.holder == in.who && s.nonce == in.nonce
		s.holder = ""
		return s, mine && (s.belief != yes || m.expiring) // one whose time was over undoes what came late
	case end:
		s.ended = true
		return s, true
	}
	return s, false
}

// may tells whether the write of an acquire can take place.
func (m rules) may(s state, in input) bool {
	if s.holder != "" && s.holder != in.who && !m.expiring {
		return false
	}
	if !in.verdict {
		return true
	}
	return in.base == s.token && (s.verdict == 0 || in.survivors.within(s.survivors))
}

func (m rules) acquired(s state, in input, out output) (state, bool) {
	switch {
	case out.kind == sbr.Granted && !in.verdict && s.holder == in.who && out.shown == s.record:
		s.belief = yes // re-entered, or an earlier grant of its own was adopted
		return s, true
	case !showsState(in, out) && !in.verdict && s.holder == in.who && s.belief != no &&
		s.behind(out.shown.token):
		return s, true // re-entered while it did not know yet of a grant whose answer was lost
	case out.kind == sbr.Granted:
		next := s.granted(in, yes)
		return next, m.may(s, in) && out.shown == next.record
	case out.kind != sbr.Held || out.shown != s.record:
		return s, false
	case !out.superseded:
		return s, s.holder != "" && s.holder != in.who
	case s.holder == in.who && s.belief == no:
		s.belief = maybe // adopted, or about to be undone
	}
	return s, in.verdict && in.base != s.token
}

// granted is s after the write of an acquire. A grant that its owner does not know of leaves a belief it
// already has.
func (s state) granted(in input, b belief) state {
	if s.holder != in.who {
		s.since, s.belief = s.token+1, b
	}
	if b == yes {
		s.belief = yes
	}
	s.holder, s.nonce, s.token = in.who, in.nonce, s.token+1
	if in.verdict {
		s.verdict, s.survivors = s.token, in.survivors
	}
	return s
}

func (m rules) released(s state, in input, out output) (state, bool) {
	mine := s.holder == in.who
	s = s.disbelieved(in.who)
	switch out.released {
	case wasReleased:
		if !mine {
			// A pending earlier write, or another owner's, came before the one it sent. It cannot know, and
			// its answer is true: the lease does not name it any more.
			return s, in.sent
		}
		s.holder = ""
		return s, true
	case notHeld:
		// Where holders expire, the record may still name a holder that has lost the lease.
		return s, !mine || m.expiring
	default:
		return s, true // what became of the write is a lateFree
	}
}

func (s state) disbelieved(who string) state {
	if s.holder == who {
		s.belief = no
	}
	return s
}

func (m rules) looked(s state, in input, out output) bool {
	mine := s.holder == in.who
	if out.token == 0 {
		return m.expiring || !mine || s.belief != yes
	}
	return mine && s.belief != no && (out.token == s.token || s.behind(out.token))
}

// behind tells whether token was the holder's before a further grant of its own.
func (s state) behind(token uint64) bool { return s.since <= token && token < s.token }

func (s state) String() string {
	if s.ended {
		return "the end"
	}
	return fmt.Sprintf("%v since %d, Check %s", s.record, s.since, [...]string{"no", "yes", "maybe"}[s.belief])
}

func (r record) String() string {
	return fmt.Sprintf("%q holds %d (%s), verdict %d for %x", r.holder, r.token, r.nonce, r.verdict,
		uint64(r.survivors))
}

func describe(in input, out output) string {
	name := in.who + ": "
	switch in.action {
	case acquire, lateGrant:
		call := "acquire " + in.nonce
		if in.verdict {
			call += fmt.Sprintf(" with verdict for %x on %d", uint64(in.survivors), in.base)
		}
		if in.action == lateGrant {
			return name + call + " -> unknown"
		}
		answer := out.kind.String()
		if out.superseded {
			answer += ", superseded"
		}
		return name + call + " -> " + answer + ": " + out.shown.String()
	case release:
		return name + "release -> " + out.released.String()
	case read:
		return name + "read -> " + out.shown.String()
	case look:
		return fmt.Sprintf("%scheck -> %d", name, out.token)
	case lost:
		return name + "lost: " + in.reason
	case lateFree:
		return name + "frees " + in.nonce
	default:
		return "end"
	}
}

// stuck says in a few lines how far an explanation got: its last steps, and the calls of which one would have
// to be next.
func stuck(m porcupine.Model, info porcupine.LinearizationInfo, all []porcupine.Operation) string {
	longest := longestOf(info)
	state := m.Init()
	var lines []string
	left := slices.Clone(all)
	for _, op := range longest {
		_, state = m.Step(state, op.Input, op.Output)
		lines = append(lines, fmt.Sprintf("  %s", m.DescribeOperation(op.Input, op.Output)))
		if i := slices.IndexFunc(left, func(o porcupine.Operation) bool { return same(o, op) }); i >= 0 {
			left = slices.Delete(left, i, i+1)
		}
	}
	lines = lines[max(0, len(lines)-12):]
	lines = append(lines, "then: "+m.DescribeState(state), "and none of these can be next:")
	first := slices.MinFunc(left, func(a, b porcupine.Operation) int { return int(a.Return - b.Return) })
	for _, op := range left {
		if op.Call <= first.Return {
			lines = append(lines, fmt.Sprintf("  %s [%d, %d]", m.DescribeOperation(op.Input, op.Output), op.Call,
				op.Return))
		}
	}
	return strings.Join(lines, "\n")
}

func same(a, b porcupine.Operation) bool {
	return a.ClientId == b.ClientId && a.Call == b.Call && a.Return == b.Return && a.Input == b.Input
}

func longestOf(info porcupine.LinearizationInfo) (longest []porcupine.Operation) {
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, partial := range partition {
			if len(partial) > len(longest) {
				longest = partial
			}
		}
	}
	return longest
}
