package lease_test

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// What a record of any writer can say: never a panic, never a lock-out for longer than the local
// heartbeat-timeout, and a line in the log for whatever is wrong. What the object of a Kubernetes lease can
// say is in lease/kubernetes.

var (
	farFuture = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	past      = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC) // before the bubble's clock
)

// poison is a record and what becomes of an Acquire by a party that sees it for the first time.
type poison struct {
	record lease.Record
	first  sbr.Outcome
	// within is how long it takes at most until the lease can be had.
	within time.Duration
	// line is what the log says, in parts. Empty: nothing is wrong.
	line []string
}

const longer = "the holder's heartbeat-timeout is longer than mine"

var poisons = map[string]poison{
	"nothing wrong": {
		lease.Record{Holder: "x", Token: 3, Nonce: "n", TTL: ttl, Acquired: past, Renewed: past},
		sbr.Held, ttl, nil,
	},
	"nothing wrong, shorter": {
		lease.Record{Holder: "x", Token: 3, Nonce: "n", TTL: time.Minute, Renewed: past}, sbr.Held,
		time.Minute, nil,
	},
	"huge duration": {
		lease.Record{Holder: "x", Token: 3, Nonce: "n", TTL: 290 * 365 * day, Renewed: past}, sbr.Held, ttl,
		[]string{longer, "holder=x", "recorded=2540400h"},
	},
	"for ever": {
		lease.Record{Holder: "x", Token: 3, Nonce: "n", Renewed: past}, sbr.Held, ttl, []string{longer, "holder=x"},
	},
	"the largest duration there is": {
		lease.Record{Holder: "x", Token: 3, Nonce: "n", TTL: math.MaxInt64, Renewed: past}, sbr.Held, ttl,
		[]string{longer},
	},
	"negative duration": {
		lease.Record{Holder: "x", Token: 3, Nonce: "n", TTL: math.MinInt64, Renewed: past}, sbr.Held, ttl,
		[]string{"heartbeat-timeout", "holder=x"},
	},
	"times in the future": {
		lease.Record{Holder: "x", Token: 3, Nonce: "n", TTL: ttl, Acquired: farFuture, Renewed: farFuture},
		sbr.Held, ttl,
		[]string{"future", "9999-12-31", "holder=x"},
	},
	"huge duration and times in the future": {
		lease.Record{Holder: "x", Token: 3, Nonce: "n", TTL: 290 * 365 * day, Renewed: farFuture}, sbr.Held, ttl,
		[]string{longer},
	},
	"no times": {
		lease.Record{Holder: "x", Token: 3, Nonce: "n", TTL: ttl}, sbr.Held, ttl, nil,
	},
	"free, with a time": { // as after a release
		lease.Record{Token: 3, Nonce: "n", TTL: ttl, Acquired: past, Renewed: past}, sbr.Granted, 0, nil,
	},
	"free, with a time in the future": {
		lease.Record{Token: 3, Nonce: "n", TTL: ttl, Acquired: farFuture, Renewed: farFuture}, sbr.Granted, 0,
		[]string{"future", "9999-12-31"},
	},
	"holder without token or nonce": { // another elector
		lease.Record{Holder: "x", TTL: 15 * time.Second, Renewed: past}, sbr.Held, 15 * time.Second, nil,
	},
	"my name, another's nonce": { // an earlier life
		lease.Record{Holder: "b", Token: 3, Nonce: "n", TTL: ttl, Renewed: past}, sbr.Granted, 0, nil,
	},
	"my name, everything wrong": {
		lease.Record{Holder: "b", Token: 3, Nonce: "n", TTL: math.MaxInt64, Renewed: farFuture}, sbr.Granted, 0,
		[]string{"future"},
	},
	"verdict ahead of the record": {
		lease.Record{Token: 1, Nonce: "n", Renewed: past,
			Verdict: &sbr.Verdict{Token: 7, Survivors: []sbr.ID{"a"}}}, sbr.Granted, 0,
		[]string{"verdict", "7"},
	},
	"verdict ahead of a held record": {
		lease.Record{Holder: "x", Token: 1, Nonce: "n", TTL: ttl, Renewed: past,
			Verdict: &sbr.Verdict{Token: 7, Survivors: []sbr.ID{"a"}}},
		sbr.Held, ttl, []string{"verdict", "7"},
	},
	"verdict for nobody": {
		lease.Record{Token: 2, Nonce: "n", Renewed: past, Verdict: &sbr.Verdict{Token: 1}}, sbr.Granted, 0, nil,
	},
	"a name of a megabyte": {
		lease.Record{Holder: strings.Repeat("x", 1<<20), Token: 3, Nonce: "n", TTL: ttl, Renewed: past},
		sbr.Held, ttl, nil,
	},
	"the largest token but one": {
		lease.Record{Token: math.MaxInt64 - 1, Nonce: "n", Renewed: past}, sbr.Granted, 0, nil,
	},
}

func TestPoison_RecordsOfAllKinds(t *testing.T) {
	for name, p := range poisons {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, w *world) {
				b := w.lease("b")
				w.store.Restore(p.record)
				began := time.Now()
				out := w.plain(b)
				require.Equal(t, p.first, out.Kind, "%v", out)
				if out.Kind == sbr.Held {
					require.Equal(t, p.within, out.RetryAfter)
				}
				w.outlives(b, p, began)
				// From here on all is as ever.
				time.Sleep(2 * ttl)
				require.True(t, b.Check())
				require.NoError(t, b.Release(t.Context()))
			})
		})
		t.Run(name+", while it is watched", func(t *testing.T) {
			story(t, func(t *testing.T, w *world) {
				b := w.lease("b")
				seen, stop := watching(t, b)
				synctest.Wait()
				w.store.Restore(p.record)
				began := time.Now()
				synctest.Wait()
				all := seen()
				require.Equal(t, p.record.Holder, all[len(all)-1].Holder, "it brings the record as it is")
				w.outlives(b, p, began)
				_ = stop()
			})
		})
	}
}

// outlives demands that the lease is had in time, under a newer token, and that what is wrong was said.
func (w *world) outlives(l *lease.Lease, p poison, began time.Time) {
	w.t.Helper()
	granted := w.within(l, p.within)
	require.LessOrEqual(w.t, time.Since(began), p.within)
	require.Greater(w.t, granted.Token, p.record.Token)
	require.Equal(w.t, p.record.Verdict, granted.Verdict)
	if p.record.Verdict != nil {
		require.Greater(w.t, granted.Token, p.record.Verdict.Token)
	}
	w.said(p.line)
}

// The one poison that needs a hand: no grant could be told from the one before, or no fence would take its
// token. It is said loudly, and nothing is written. A token beyond the limit is not even learnt: once the
// record is repaired everybody goes on.
func TestPoison_ATokenThatCannotGrow(t *testing.T) {
	for name, p := range map[string]struct {
		record lease.Record
		beyond bool
	}{
		"the largest":                   {lease.Record{Token: lease.MaxToken, Nonce: "n"}, false},
		"a verdict with the largest":    {lease.Record{Token: 1, Nonce: "n", Verdict: &sbr.Verdict{Token: lease.MaxToken}}, false},
		"beyond":                        {lease.Record{Token: lease.MaxToken + 1, Nonce: "n"}, true},
		"far beyond, held":              {lease.Record{Holder: "x", Token: math.MaxUint64, TTL: ttl, Nonce: "n"}, true},
		"far beyond, by the same owner": {lease.Record{Holder: "b", Token: math.MaxUint64, TTL: ttl, Nonce: "n"}, true},
		"a verdict beyond":              {lease.Record{Token: 1, Nonce: "n", Verdict: &sbr.Verdict{Token: 1 << 63}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, w *world) {
				b := w.lease("b")
				seen, stop := watching(t, b)
				before := w.store.Restore(p.record)
				synctest.Wait()
				began := time.Now()
				out := w.unknown(b)
				require.Zero(t, time.Since(began), "another try would end the same way")
				require.ErrorIs(t, out.Err, lease.ErrTokenSpent)
				require.NotContains(t, out.Err.Error(), "\n")
				require.Equal(t, before, w.store.Snapshot())
				w.said([]string{"the token in the record cannot grow any more", "see sbr lease reset"})
				_, err := b.Read(t.Context())
				if !p.beyond {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, lease.ErrTokenSpent)
				require.ErrorContains(t, err, "9223372036854775807")
				w.store.Restore(lease.Record{Token: 7})
				synctest.Wait()
				for _, r := range seen() {
					require.LessOrEqual(t, r.Token, lease.MaxToken)
				}
				require.EqualValues(t, 8, w.granted(b).Token)
				_ = stop()
			})
		})
	}
}

// A holder whose token is poisoned under its hands stops in time, and nobody else begins.
func TestPoison_ATokenBeyondTheLimitWhileHolding(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a, lost := holder(w)
		r := w.record()
		r.Token = math.MaxUint64
		w.store.Restore(r)
		time.Sleep(ttl)
		require.False(t, a.Check())
		require.ErrorIs(t, lost.all()[0], lease.ErrTokenSpent)
		require.ErrorIs(t, w.unknown(w.lease("b")).Err, lease.ErrTokenSpent)
	})
}

// A holder whose record is poisoned under its hands goes on, if it is still named there, and says what it
// found.
func TestPoison_WhileHolding(t *testing.T) {
	for name, change := range map[string]func(*lease.Record){
		"huge duration":          func(r *lease.Record) { r.TTL = math.MaxInt64 },
		"for ever":               func(r *lease.Record) { r.TTL = 0 },
		"times in the future":    func(r *lease.Record) { r.Renewed, r.Acquired = farFuture, farFuture },
		"times in the past":      func(r *lease.Record) { r.Renewed, r.Acquired = past, past },
		"without times":          func(r *lease.Record) { r.Renewed, r.Acquired = time.Time{}, time.Time{} },
		"another reason written": func(r *lease.Record) { r.Verdict = &sbr.Verdict{Token: r.Token, Reason: "edited"} },
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, w *world) {
				a, lost := holder(w)
				b := w.lease("b")
				r := w.record()
				change(&r)
				w.store.Restore(r)
				for range 30 {
					time.Sleep(interval)
					require.True(t, a.Check())
					w.held(b, "a") // each heartbeat is a sign of life, however far ahead the recorded time is
				}
				require.Empty(t, lost.all())
				require.Equal(t, ttl, w.record().TTL, "the next heartbeat has put it right")
				require.NoError(t, a.Release(t.Context()))
				w.granted(b)
			})
		})
	}
}

// within acquires, trying each second, and fails if that takes longer than d.
func (w *world) within(l *lease.Lease, d time.Duration) lease.Record {
	w.t.Helper()
	for began := time.Now(); ; time.Sleep(time.Second) {
		out := w.plain(l)
		if out.Kind == sbr.Granted {
			require.True(w.t, l.Check())
			return out.Record
		}
		require.Equal(w.t, sbr.Held, out.Kind, "%v", out)
		require.Less(w.t, time.Since(began), d, "locked out")
	}
}

// said demands exactly one warning, which has all the parts; none if there are no parts.
func (w *world) said(parts []string) {
	w.t.Helper()
	lines := w.logs.All()
	if parts == nil {
		require.Empty(w.t, lines)
		return
	}
	for _, line := range lines {
		missing := false
		for _, part := range parts {
			missing = missing || !strings.Contains(line, part)
		}
		if !missing {
			require.NotContains(w.t, line, "\n")
			return
		}
	}
	require.Fail(w.t, "no line in the log says it", "wanted: %q\ngot: %q", parts, lines)
}

// A store that forgets: the record is deleted, deleted and made anew by somebody, or put back from a backup.
// For every party that has seen the newest verdict the token never goes back and the survivors never grow;
// the lease can be had again within the heartbeat-timeout; and the log says what has happened.

// forgetting is a store that has gone through tokens 1 to 4: verdicts for a, b, c (1) and for a, b (3), plain
// locks (2 and 4).
type forgetting struct {
	*world
	// backups are the records under each token, held and free.
	held, free [5]lease.Record
}

const lastToken = 4

func newForgetting(t *testing.T) *forgetting {
	f := &forgetting{world: newWorld(t)}
	x := f.lease("x")
	for token, survivors := range [][]sbr.ID{1: {"a", "b", "c"}, 2: nil, 3: {"a", "b"}, 4: nil} {
		if token == 0 {
			continue
		}
		p := lease.Proposal{}
		if survivors != nil {
			p = verdict(uint64(token-1), "a", survivors...)
		}
		require.Equal(t, sbr.Granted, linear.AnswerOf(x.Acquire(t.Context(), p)).Kind)
		f.held[token] = f.record()
		require.NoError(t, x.Release(t.Context()))
		f.free[token] = f.record()
	}
	x.Close()
	return f
}

// way is one in which a store forgets: what is said of it, and within which time the lease is had again.
type way struct {
	forget func(*forgetting)
	line   string
	within time.Duration
}

var forgetful = map[string]way{
	"deleted":                     {func(f *forgetting) { f.store.Delete() }, "the record vanished", 0},
	"deleted and made anew, free": {func(f *forgetting) { f.store.Delete(); f.store.Restore(lease.Record{}) }, "the record went backwards", 0},
	"deleted and made anew by another elector": {
		func(f *forgetting) { f.store.Delete(); f.store.Restore(lease.Record{Holder: "x", TTL: ttl}) },
		"the record went backwards", ttl,
	},
	"deleted and taken by somebody new": {func(f *forgetting) {
		f.store.Delete()
		n := f.lease("newcomer")
		require.Equal(f.t, sbr.Granted, linear.AnswerOf(n.Acquire(f.t.Context(), verdict(0, "c", "c", "d"))).Kind)
		n.Close()
	}, "the record went backwards", ttl},
	"restored, one token back":       {func(f *forgetting) { f.store.Restore(f.free[3]) }, "the record went backwards", 0},
	"restored, before the verdict":   {func(f *forgetting) { f.store.Restore(f.free[2]) }, "the record went backwards", 0},
	"restored, before both verdicts": {func(f *forgetting) { f.store.Restore(lease.Record{}) }, "the record went backwards", 0},
	"restored, held":                 {func(f *forgetting) { f.store.Restore(f.held[2]) }, "the record went backwards", ttl},
	"restored, held under a verdict": {func(f *forgetting) { f.store.Restore(f.held[1]) }, "the record went backwards", ttl},
	"restored twice":                 {func(f *forgetting) { f.store.Restore(f.free[3]); f.store.Restore(f.held[1]) }, "the record went backwards", ttl},
}

// eachForgetful runs a test for each way, with a lease of b that has seen the newest verdict.
func eachForgetful(t *testing.T,
	test func(t *testing.T, c way, f *forgetting, b *lease.Lease, newest *sbr.Verdict)) {
	for name, c := range forgetful {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newForgetting(t)
				b := f.lease("b")
				test(t, c, f, b, f.seen(b))
			})
		})
	}
}

func TestPoison_AStoreThatForgets(t *testing.T) {
	eachForgetful(t, func(t *testing.T, c way, f *forgetting, b *lease.Lease, newest *sbr.Verdict) {
		c.forget(f)
		f.remembers(b, newest)

		// a token of the past; and what the store has lost may have been newer still
		for _, base := range []uint64{1, lastToken} {
			out := linear.AnswerOf(b.Acquire(t.Context(), verdict(base, "b", "a", "b", "c")))
			require.Equal(t, sbr.Held, out.Kind, "%v", out)
			require.True(t, out.Superseded)
			require.Equal(t, newest, out.Record.Verdict)
		}

		began := time.Now()
		granted := f.within(b, c.within)
		require.LessOrEqual(t, time.Since(began), c.within)
		require.EqualValues(t, lastToken+1, granted.Token, "one more than was ever seen")
		require.Equal(t, newest, granted.Verdict)
		require.Equal(t, newest, f.record().Verdict, "and so the store has it again")
		f.said([]string{c.line, "newest-token=4"})
	})
}

// The same while the lease is held: it is lost, with a reason, and acquired again by its former holder, under
// a larger token.
func TestPoison_AStoreThatForgetsItsHolder(t *testing.T) {
	eachForgetful(t, func(t *testing.T, c way, f *forgetting, b *lease.Lease, newest *sbr.Verdict) {
		var lost losses
		require.Equal(t, sbr.Granted, lost.follow(linear.AnswerOf(b.Acquire(t.Context(), lease.Proposal{}))).Kind)
		c.forget(f)
		time.Sleep(interval + time.Second)
		synctest.Wait()
		require.False(t, b.Check())
		require.Len(t, lost.all(), 1)
		require.ErrorIs(t, lost.all()[0], lease.ErrLost)
		f.remembers(b, newest)
		granted := f.within(b, c.within)
		require.EqualValues(t, lastToken+2, granted.Token)
		require.Equal(t, newest, f.record().Verdict)
		f.said([]string{"lease: lost", "reason="})
		f.said([]string{c.line, "newest-token=5"})
	})
}

// A watch does not show the past.
func TestPoison_AStoreThatForgetsUnderAWatch(t *testing.T) {
	eachForgetful(t, func(t *testing.T, c way, f *forgetting, b *lease.Lease, newest *sbr.Verdict) {
		seen, stop := watching(t, b)
		synctest.Wait()
		c.forget(f)
		synctest.Wait()
		behind := false
		for _, r := range seen() {
			require.EqualValues(t, lastToken, r.Token)
			require.Equal(t, newest, r.Verdict)
			behind = r.Behind
		}
		require.EqualValues(t, lastToken+1, f.within(b, 2*ttl).Token)
		f.said([]string{c.line})
		require.True(t, behind, "a running watch tells that the store went backwards")
		_ = stop()
	})
}

// A party that knows nothing of what was forgotten takes what the store says. It learns better from the first
// write of a party that knows it, and from then on nothing brings the old verdict back.
func TestPoison_WhoeverRemembersRepairsTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForgetting(t)
		b, newcomer := f.lease("b"), f.lease("newcomer")
		newest := f.seen(b)
		f.store.Restore(f.free[2])
		r, err := newcomer.Read(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, r.Token, "nobody told it")

		f.granted(b)
		_ = b.Release(t.Context())
		f.store.Restore(f.free[1]) // once more
		f.granted(b)
		_ = b.Release(t.Context())
		f.remembers(newcomer, newest)
		f.store.Restore(f.free[1])
		f.remembers(newcomer, newest)
	})
}

// seen makes l read the record and returns the newest verdict.
func (f *forgetting) seen(l *lease.Lease) *sbr.Verdict {
	f.t.Helper()
	r, err := l.Read(f.t.Context())
	require.NoError(f.t, err)
	require.EqualValues(f.t, lastToken, r.Token)
	require.Equal(f.t, []sbr.ID{"a", "b"}, r.Verdict.Survivors)
	return r.Verdict
}

// remembers demands that l shows the newest verdict, and no token before the last, however often it reads.
func (f *forgetting) remembers(l *lease.Lease, newest *sbr.Verdict) {
	f.t.Helper()
	for range 3 {
		r, err := l.Read(f.t.Context())
		require.NoError(f.t, err)
		require.GreaterOrEqual(f.t, r.Token, uint64(lastToken))
		require.Equal(f.t, newest, r.Verdict)
	}
}
