package lease_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// A store that forgets: the record is deleted, deleted and made anew by somebody, or put back from a backup. For everybody who
// has seen the newest verdict the token never goes back and the survivors never grow; the lease can be had again within the
// heartbeat-timeout; and the log says what has happened.

// forgetting is a store that has gone through tokens 1 to 4: verdicts for a, b, c (1) and for a, b (3), plain locks (2 and 4).
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

var forgetful = map[string]struct {
	forget func(*forgetting)
	line   string
	within time.Duration
}{
	"deleted":                     {func(f *forgetting) { f.store.Delete() }, "the record vanished", 0},
	"deleted and made anew, free": {func(f *forgetting) { f.store.Delete(); f.store.Restore(lease.Record{}) }, "the record went backwards", 0},
	"deleted and made anew by another elector": {
		func(f *forgetting) { f.store.Delete(); f.store.Restore(lease.Record{Holder: "x", TTL: ttl}) }, "the record went backwards", ttl,
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

func TestPoison_AStoreThatForgets(t *testing.T) {
	for name, c := range forgetful {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newForgetting(t)
				b := f.lease("b")
				newest := f.seen(b)
				c.forget(f)
				f.remembers(b, newest)

				out := linear.AnswerOf(b.Acquire(t.Context(), verdict(1, "b", "a", "b", "c")))
				require.Equal(t, sbr.Held, out.Kind, "what builds on a token of the past: %v", out)
				require.True(t, out.Superseded)
				require.Equal(t, newest, out.Record.Verdict)

				began := time.Now()
				granted := f.within(b, c.within)
				require.LessOrEqual(t, time.Since(began), c.within)
				require.EqualValues(t, lastToken+1, granted.Token, "one more than was ever seen")
				require.Equal(t, newest, granted.Verdict)
				require.Equal(t, newest, f.record().Verdict, "and so the store has it again")
				f.said([]string{c.line, "newest-token=4"})
			})
		})
	}
}

// The same while the lease is held: it is lost, with a reason, and had again by whoever held it, under a larger token.
func TestPoison_AStoreThatForgetsItsHolder(t *testing.T) {
	for name, c := range forgetful {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newForgetting(t)
				b := f.lease("b")
				newest := f.seen(b)
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
		})
	}
}

// Whoever watches is not shown the past.
func TestPoison_AStoreThatForgetsUnderAWatch(t *testing.T) {
	for name, c := range forgetful {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newForgetting(t)
				b := f.lease("b")
				newest := f.seen(b)
				seen, stop := watching(t, b)
				synctest.Wait()
				c.forget(f)
				synctest.Wait()
				for _, r := range seen() {
					require.EqualValues(t, lastToken, r.Token)
					require.Equal(t, newest, r.Verdict)
				}
				require.EqualValues(t, lastToken+1, f.within(b, 2*ttl).Token)
				f.said([]string{c.line})
				_ = stop()
			})
		})
	}
}

// A party that knows nothing of what was forgotten takes what the store says. It learns better from the first write of one
// that does, and from then on nothing brings the old verdict back.
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
