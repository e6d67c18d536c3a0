package linear

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// To know the answers to come shortens the search and must not change its result: random histories of one
// lease, some with a wrong answer, are judged with and without.
func TestModel_TheAnswersToComeChangeNoResult(t *testing.T) {
	judged := map[porcupine.CheckResult]int{}
	for seed := range uint64(3000) {
		expiring := seed%3 == 0
		random := rand.New(rand.NewPCG(seed, 0))
		h := fiction(random, expiring)
		if seed%2 == 0 {
			spoil(random, h)
		}
		all := h.operations()
		want := porcupine.CheckOperationsTimeout(model(expiring, nil), all, 0)
		got := porcupine.CheckOperationsTimeout(model(expiring, shownIn(all)), all, 0)
		require.Equal(t, want, got, "seed %d", seed)
		judged[want]++
	}
	t.Log(judged)
	require.Greater(t, judged[porcupine.Ok], 1000)
	require.Greater(t, judged[porcupine.Illegal], 200)
}

// fiction invents a history: a lease goes its way, one step each ten ticks, and each step was under way for a
// while around it.
func fiction(random *rand.Rand, expiring bool) *History {
	h, m, s := New(Options{Expiring: expiring}), rules{expiring, nil}, state{}
	var ops []porcupine.Operation
	for at := int64(100); len(ops)+len(h.open) < 14; at += 10 {
		who := fmt.Sprint(random.IntN(3))
		in := input{action: action(random.IntN(int(end))), who: who, nonce: fmt.Sprintf("%s#%d", who, at)}
		if in.action == acquire && random.IntN(2) == 0 {
			in.verdict, in.base, in.survivors = true, s.token-uint64(random.IntN(2))*min(s.token, 1), set(random.IntN(8))
		}
		if in.action == lateFree {
			in.who, in.nonce = s.holder, s.nonce
		}
		out := answer(random, m, s, in)
		next, ok := m.step(s, in, out)
		if !ok {
			continue
		}
		s = next
		op := porcupine.Operation{Input: in, Output: out, Call: at - random.Int64N(40), Return: at + random.Int64N(40)}
		if in.action == lateGrant || in.action == lateFree {
			h.open = append(h.open, op)
		} else {
			ops = append(ops, op)
		}
	}
	if random.IntN(2) == 0 { // in doubt, and never done
		h.open = append(h.open, porcupine.Operation{Input: input{action: lateGrant, who: "2", nonce: "2#x"}, Output: output{}, Call: 120})
	}
	h.ops = ops
	h.clock.Store(100_000)
	return h
}

// answer is one that is true of s.
func answer(random *rand.Rand, m rules, s state, in input) (out output) {
	switch in.action {
	case read:
		return output{shown: s.record}
	case look:
		if s.holder == in.who && s.belief == yes {
			return output{token: s.token}
		}
	case release:
		out.released = notHeld
		if s.holder == in.who {
			out.released = released(random.IntN(2)) // unknown or released
		}
	case acquire:
		if m.may(s, in) {
			return output{kind: sbr.Granted, shown: s.granted(in, yes).record}
		}
		return output{kind: sbr.Held, shown: s.record, superseded: in.verdict && in.base != s.token}
	}
	return out
}

// spoil changes one answer.
func spoil(random *rand.Rand, h *History) {
	i := random.IntN(len(h.ops))
	out := h.ops[i].Output.(output)
	switch random.IntN(5) {
	case 0:
		out.shown.token++
	case 1:
		out.shown.holder = fmt.Sprint(random.IntN(3))
	case 2:
		out.token = uint64(random.IntN(5))
	case 3:
		out.released = released(random.IntN(3))
	case 4:
		out.shown = h.ops[random.IntN(len(h.ops))].Output.(output).shown
	}
	h.ops[i].Output = out
}

// Thirty grants in doubt, of which one took place unseen between two that were seen: there are more orders of
// them than a search can try.
func TestModel_GrantsInDoubtThatNobodySaw(t *testing.T) {
	s := story{New(Options{})}
	for i := range 30 {
		s.doubt(lateGrant, fmt.Sprint("x", i), fmt.Sprint("x", i, "#1"))
		s.doubt(lateFree, fmt.Sprint("x", i), fmt.Sprint("x", i, "#1"))
	}
	var under []int64
	for range 20 {
		under = append(under, s.now())
	}
	s.granted("a", "a#1", 1)
	s.release("a", wasReleased)
	s.granted("b", "b#1", 3)
	for i, called := range under { // in flight all the time
		s.add(1, input{action: acquire, who: fmt.Sprint("h", i), nonce: fmt.Sprint("h", i, "#1")}, called,
			output{kind: sbr.Held, shown: record{holder: "b", nonce: "b#1", token: 3}})
	}
	s.release("b", wasReleased)
	s.read(record{nonce: "b#1", token: 3})
	require.NoError(t, s.Check(10*time.Second, t.TempDir()))
}
