package linear

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// story is a history by hand: what is told was called and answered, one after the other.
type story struct{ *History }

func (s story) did(in input, out output) { s.add(0, in, s.now(), out) }

func (s story) granted(who, nonce string, token uint64) {
	s.did(input{action: acquire, who: who, nonce: nonce},
		output{kind: sbr.Granted, shown: record{holder: who, nonce: nonce, token: token}})
}

// decided is a grant with a verdict that builds on the token before.
func (s story) decided(who, nonce string, token uint64, survivors set) {
	s.did(input{action: acquire, who: who, nonce: nonce, verdict: true, base: token - 1, survivors: survivors},
		output{kind: sbr.Granted, shown: record{holder: who, nonce: nonce, token: token, verdict: token,
			survivors: survivors}})
}

func (s story) held(who, by, nonce string, token uint64) {
	s.did(input{action: acquire, who: who},
		output{kind: sbr.Held, shown: record{holder: by, nonce: nonce, token: token}})
}

func (s story) release(who string, kind released) {
	s.did(input{action: release, who: who}, output{released: kind})
}

func (s story) look(who string, token uint64) {
	s.did(input{action: look, who: who}, output{token: token})
}
func (s story) read(shown record) { s.did(input{action: read, who: "r"}, output{shown: shown}) }
func (s story) lost(who string)   { s.did(input{action: lost, who: who}, output{}) }

func (s story) doubt(a action, who, nonce string) {
	s.pending(0, input{action: a, who: who, nonce: nonce}, s.now())
}

var possible = map[string]func(story){
	"nothing": func(story) {},
	"one lock": func(s story) {
		s.granted("a", "1", 1)
		s.look("a", 1)
		s.held("b", "a", "1", 1)
		s.release("a", wasReleased)
	},
	"two in turn": func(s story) {
		s.granted("a", "1", 1)
		s.release("a", wasReleased)
		s.look("a", 0)
		s.granted("b", "2", 2)
		s.release("a", notHeld)
	},
	"a chain of verdicts": func(s story) { s.decided("a", "1", 1, 7); s.decided("a", "2", 2, 3); s.look("a", 2) },
	"re-entered":          func(s story) { s.granted("a", "1", 1); s.granted("a", "1", 1) },
	"an attempt in doubt that came to nothing": func(s story) { s.doubt(lateGrant, "a", "1"); s.granted("b", "2", 1) },
	"an attempt in doubt that was granted":     func(s story) { s.doubt(lateGrant, "a", "1"); s.held("b", "a", "1", 1) },
	"… and undone": func(s story) {
		s.doubt(lateGrant, "a", "1")
		s.held("b", "a", "1", 1)
		s.doubt(lateFree, "a", "1")
		s.granted("b", "2", 2)
	},
	"… and undone, and nobody saw it": func(s story) {
		s.doubt(lateGrant, "a", "1")
		s.doubt(lateFree, "a", "1")
		s.granted("b", "2", 2)
	},
	"… and adopted": func(s story) { s.doubt(lateGrant, "a", "1"); s.granted("a", "1", 1); s.look("a", 1) },
	"a release in doubt": func(s story) {
		s.granted("a", "1", 1)
		s.release("a", releaseUnknown)
		s.doubt(lateFree, "a", "1")
		s.held("b", "a", "1", 1)
		s.granted("b", "2", 2)
	},
}

var impossible = map[string]func(story){
	"two holders":                 func(s story) { s.granted("a", "1", 1); s.granted("b", "2", 2) },
	"one token for two":           func(s story) { s.granted("a", "1", 1); s.release("a", wasReleased); s.granted("b", "2", 1) },
	"a token left out":            func(s story) { s.granted("a", "1", 2) },
	"held by nobody":              func(s story) { s.held("b", "a", "1", 1) },
	"held after the release":      func(s story) { s.granted("a", "1", 1); s.release("a", wasReleased); s.held("b", "a", "1", 1) },
	"an old read":                 func(s story) { s.granted("a", "1", 1); s.read(record{}) },
	"a read of the wrong verdict": func(s story) { s.decided("a", "1", 1, 3); s.read(record{holder: "a", nonce: "1", token: 1}) },
	"survivors that grow":         func(s story) { s.decided("a", "1", 1, 3); s.decided("a", "2", 2, 7) },
	"superseded by its own base": func(s story) {
		s.did(input{action: acquire, who: "a", verdict: true}, output{kind: sbr.Held, superseded: true})
	},
	"check by another":              func(s story) { s.granted("a", "1", 1); s.look("b", 1) },
	"check after the release":       func(s story) { s.granted("a", "1", 1); s.release("a", releaseUnknown); s.look("a", 1) },
	"check after nothing":           func(s story) { s.look("a", 1) },
	"no by a holder":                func(s story) { s.granted("a", "1", 1); s.look("a", 0) },
	"check of a token not its own":  func(s story) { s.granted("a", "1", 1); s.look("a", 2) },
	"check of a grant nobody knows": func(s story) { s.doubt(lateGrant, "a", "1"); s.look("a", 1) },
	"nothing to release":            func(s story) { s.granted("a", "1", 1); s.release("a", notHeld) },
	"released what it had not":      func(s story) { s.release("a", wasReleased) },
	"released by nobody":            func(s story) { s.granted("a", "1", 1); s.release("a", releaseUnknown); s.granted("b", "2", 2) },
	"undone what was told":          func(s story) { s.granted("a", "1", 1); s.doubt(lateFree, "a", "1"); s.granted("b", "2", 2) },
	"lost for no reason":            func(s story) { s.granted("a", "1", 1); s.lost("a") },
}

func TestModel(t *testing.T) {
	for name, tell := range possible {
		t.Run("possible/"+name, func(t *testing.T) {
			s := story{New(Options{})}
			tell(s)
			require.NoError(t, s.Check(time.Minute, t.TempDir()))
		})
	}
	for name, tell := range impossible {
		t.Run("impossible/"+name, func(t *testing.T) {
			s := story{New(Options{})}
			tell(s)
			err := s.Check(time.Minute, t.TempDir())
			require.ErrorContains(t, err, "linear: Illegal")
			require.ErrorContains(t, err, "history-")
		})
	}
}

func TestModel_WhereHoldersExpire(t *testing.T) {
	check := func(tell func(story)) error {
		s := story{New(Options{Expiring: true})}
		tell(s)
		return s.Check(time.Minute, t.TempDir())
	}
	takeover := func(s story) { s.granted("a", "1", 1); s.granted("b", "2", 2) }
	require.NoError(t, check(takeover))
	require.NoError(t, check(func(s story) { takeover(s); s.look("b", 2); s.look("a", 0); s.lost("a") }))
	require.Error(t, check(func(s story) { takeover(s); s.look("a", 1) }), "replaced, and believes in it")
	require.Error(t, check(func(s story) { takeover(s); s.look("a", 2) }))
	require.Error(t, check(func(s story) { takeover(s); s.release("a", wasReleased) }))
	require.NoError(t, check(func(s story) { takeover(s); s.release("a", notHeld) }))
	late := func(s story) {
		s.granted("a", "1", 1)
		s.doubt(lateGrant, "a", "2")
		s.look("a", 0)
		s.lost("a")
		s.doubt(lateFree, "a", "2")
		s.read(record{nonce: "2", token: 2})
	}
	require.NoError(t, check(late),
		"the answer to a second acquire is lost, the time is over, and the record is tidied up")
	require.Error(t, check(func(s story) { late(s); s.look("a", 2) }))
}

// What is in flight together may have happened in any order; what was answered before something was called
// may not.
func TestModel_RealTime(t *testing.T) {
	h := New(Options{})
	in := input{action: acquire, who: "a", nonce: "1"}
	called := h.now()
	h.add(1, input{action: read, who: "r"}, h.now(), output{})
	h.add(0, in, called, output{kind: sbr.Granted, shown: record{holder: "a", nonce: "1", token: 1}})
	require.NoError(t, h.Check(time.Minute, t.TempDir()))
	h.add(1, input{action: read, who: "r"}, h.now(), output{})
	require.Error(t, h.Check(time.Minute, t.TempDir()))
}

// mute is a store that loses every answer to a write, after or without having written.
type mute struct{ writes []lease.Record }

func (m *mute) Read(context.Context) (lease.Snapshot, error) { return lease.Snapshot{}, nil }

func (m *mute) Write(_ context.Context, r lease.Record, _ lease.Version) (lease.Version, error) {
	m.writes = append(m.writes, r)
	return "", context.DeadlineExceeded
}

// Only what left the client may turn up later.
func TestClient_OnlyWhatWasSentIsInDoubt(t *testing.T) {
	h := New(Options{})
	s := lease.Settings{HeartbeatTimeout: time.Hour, OperationTimeout: 50 * time.Millisecond}
	store := &mute{}
	c, err := h.Open(0, 0, store, s, lease.Options{})
	require.NoError(t, err)
	defer c.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, sbr.Unknown, c.Acquire(ended, nil))
	require.Zero(t, h.Tally()["late-grant"])
	require.Equal(t, sbr.Unknown, c.Acquire(t.Context(), nil))
	require.NotEmpty(t, store.writes)
	require.Equal(t, 1, h.Tally()["late-grant"])
	require.NoError(t, h.Check(time.Minute, t.TempDir()))
}

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
			in.verdict, in.base, in.survivors = true, s.token-uint64(random.IntN(2))*min(s.token, 1),
				set(random.IntN(8))
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
		op := porcupine.Operation{Input: in, Output: out, Call: at - random.Int64N(40),
			Return: at + random.Int64N(40)}
		if in.action == lateGrant || in.action == lateFree {
			h.open = append(h.open, op)
		} else {
			ops = append(ops, op)
		}
	}
	if random.IntN(2) == 0 { // in doubt, and never done
		h.open = append(h.open, porcupine.Operation{Input: input{action: lateGrant, who: "2", nonce: "2#x"},
			Output: output{}, Call: 120})
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
