package linear

import (
	"math"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// A lease only moves on: each grant has a larger token, and a lease that was freed is not held again under
// the same one. So most answers say where in that order they belong, and the times between which they took
// place can be narrowed before the search. That changes no result (see the tests); without it, a search
// through thirty clients in flight may take for ever.

// stage counts what a lease goes through: held under token t is 2t, free after that is 2t+1.
type stage uint64

func heldUnder(token uint64) stage { return stage(2 * token) }

func stageOf(r record) stage {
	if r.holder == "" {
		return heldUnder(r.token) + 1
	}
	return heldUnder(r.token)
}

// span is the stages in which an operation can have taken place.
type span struct{ from, to stage }

var anywhere = span{0, math.MaxUint64}

// narrow returns what is left of ops, with shorter intervals. ok is false if an interval is empty: then
// nothing explains ops.
func narrow(ops []porcupine.Operation) (left []porcupine.Operation, ok bool) {
	ops = slices.DeleteFunc(slices.Clone(ops), alwaysPossible(ops))
	spans := spansOf(ops)
	left = slices.Clone(ops)
	for i := range left {
		// Room between two times, to keep what was moved to the same one in the order of its stages.
		const room = 1 << 24
		left[i].Call, left[i].Return = ops[i].Call*room, ops[i].Return*room
		for j, other := range ops {
			if spans[j].to < spans[i].from {
				left[i].Call = max(left[i].Call, other.Call*room+int64(spans[i].from)+1)
			}
			if spans[i].to < spans[j].from {
				left[i].Return = min(left[i].Return, other.Return*room-room/2+int64(spans[i].to))
			}
		}
		if left[i].Call > left[i].Return {
			return ops, false
		}
	}
	return left, true
}

// alwaysPossible finds what constrains nothing: the "no" of a client that cannot have held the lease by then.
func alwaysPossible(ops []porcupine.Operation) func(porcupine.Operation) bool {
	first := map[string]int64{}
	for _, op := range ops {
		in, out := op.Input.(input), op.Output.(output)
		if in.action == lateGrant || in.action == acquire && out.shown.holder == in.who {
			if at, seen := first[in.who]; !seen || op.Call < at {
				first[in.who] = op.Call
			}
		}
	}
	return func(op porcupine.Operation) bool {
		in, out := op.Input.(input), op.Output.(output)
		at, seen := first[in.who]
		says := in.action == look && out.token == 0 || in.action == release && out.released == notHeld
		return says && (!seen || op.Return < at)
	}
}

func spansOf(ops []porcupine.Operation) []span {
	tokens := tokensSeen(ops)
	spans := make([]span, len(ops))
	for i, op := range ops {
		in, out := op.Input.(input), op.Output.(output)
		spans[i] = anywhere
		switch in.action {
		case read:
			spans[i] = exactly(stageOf(out.shown))
		case acquire:
			spans[i] = exactly(stageOf(out.shown))
			if out.kind == sbr.Granted && out.shown.nonce != in.nonce {
				spans[i].to = anywhere.to // re-entered: it may know less than the store
			}
		case look:
			spans[i].from = heldUnder(out.token)
		case lateGrant:
			if token := tokens[in.nonce]; token > 0 {
				spans[i] = exactly(heldUnder(token)) // somebody saw it: it has taken place
			}
		case lateFree:
			if token := tokens[in.nonce]; token > 0 {
				spans[i].from = heldUnder(token) + 1
			}
		}
	}
	return spans
}

func exactly(s stage) span { return span{s, s} }

// tokensSeen maps the nonces that were shown to their tokens; zero for one with several.
func tokensSeen(ops []porcupine.Operation) map[string]uint64 {
	tokens := map[string]uint64{}
	for _, op := range ops {
		shown := op.Output.(output).shown
		if shown.nonce == "" {
			continue
		}
		if token, seen := tokens[shown.nonce]; seen && token != shown.token {
			tokens[shown.nonce] = 0
			continue
		}
		tokens[shown.nonce] = shown.token
	}
	return tokens
}
