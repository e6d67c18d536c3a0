package leasetest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/lock"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// What the lease makes of a store is tested in package lease, and what many clients see over this one by
// historyTests. These tests are of what neither shows.
var leaseTests = []namedTest{
	{"leaves are recorded beside a verdict, whoever holds the lease", func(t *testing.T, b *bench) {
		a, o := b.lease("a", nil), b.lease("b", nil)
		held := b.granted(a, verdict(0, "a"))
		for _, l := range []*lease.Lease{o, a} {
			r, err := l.Amend(t.Context(), func(v *sbr.Verdict) bool {
				return v.Leave([]sbr.ID{sbr.ID(l.Owner())}, []sbr.ID{"heir"})
			})
			require.NoError(t, err)
			require.Equal(t, held.Token, r.Token)
			require.Equal(t, held.Holder, r.Holder)
			require.Contains(t, r.Verdict.Left, sbr.ID(l.Owner()))
		}
		require.True(t, a.Check())
		require.NoError(t, a.Release(t.Context()))
		r, err := o.Read(t.Context())
		require.NoError(t, err)
		require.Equal(t, []sbr.ID{"b", "a"}, r.Verdict.Left)
		require.Equal(t, held.Verdict.Survivors, r.Verdict.Survivors)
		require.Empty(t, b.granted(o, verdict(held.Token, "b")).Verdict.Left, "a new verdict begins anew")
	}},
	{"a running watch makes acquire one write", func(t *testing.T, b *bench) {
		store := b.open("b")
		if _, ok := store.(lease.Watcher); !ok {
			t.Skip("the store is no Watcher")
		}
		faulty := NewFaulty(store)
		a, o := b.lease("a", nil), b.leaseOver(faulty, "b", nil)
		b.granted(a, verdict(0, "a", "a", "b"))
		require.NoError(t, a.Release(t.Context()))
		seen := b.follow(o)
		b.eventually(func() bool { // and the first read beside the stream is over, the next one comes half a minute later
			r := seen()
			return r.Token == 1 && r.Holder == "" && faulty.Counters().Reads > 0
		}, "the release was not reported")
		before := faulty.Counters()
		b.granted(o, verdict(1, "b", "b"))
		after := faulty.Counters()
		require.Equal(t, [2]int{0, 1}, [2]int{after.Reads - before.Reads, after.Writes - before.Writes})
	}},
}

// verdict is a proposal by writer.
func verdict(base uint64, writer sbr.ID, survivors ...sbr.ID) lease.Proposal {
	return lease.Proposal{Base: base, Verdict: &sbr.Verdict{Survivors: survivors, DecidedBy: writer,
		Reason: string(writer) + " decided"}}
}

// lease returns a lease over a connection of its own; it is closed at the end of the test. With a clock its
// times are short.
func (b *bench) lease(owner string, clock *Clock) *lease.Lease {
	b.t.Helper()
	return b.leaseOver(b.open(owner), owner, clock)
}

func (b *bench) leaseOver(s lease.Store, owner string, clock *Clock) *lease.Lease {
	b.t.Helper()
	settings, options := lease.DefaultSettings(), lease.Options{}
	if clock != nil {
		settings, options.Clock = timed, clock
	}
	l, err := lease.New(s, owner, settings, options)
	require.NoError(b.t, err)
	b.t.Cleanup(l.Close)
	return l
}

func (b *bench) granted(l *lease.Lease, p lease.Proposal) lease.Record {
	b.t.Helper()
	out := linear.AnswerOf(l.Acquire(b.t.Context(), p))
	require.Equal(b.t, sbr.Granted, out.Kind, "%v", out)
	require.True(b.t, l.Check())
	require.Equal(b.t, out.Record.Token, l.Token())
	return out.Record
}

func (b *bench) held(l *lease.Lease, p lease.Proposal) lease.Record {
	b.t.Helper()
	out := linear.AnswerOf(l.Acquire(b.t.Context(), p))
	require.Equal(b.t, sbr.Held, out.Kind, "%v", out)
	require.NoError(b.t, out.Err)
	return out.Record
}

// follow starts a Watch and returns what gives its newest report.
func (b *bench) follow(l *lease.Lease) (newest func() lease.Record) {
	ctx, cancel := context.WithCancel(b.t.Context())
	var last atomic.Pointer[lease.Record]
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = l.Watch(ctx, func(r lease.Record) { last.Store(&r) })
	}()
	b.t.Cleanup(func() { cancel(); <-done })
	return func() lease.Record {
		if r := last.Load(); r != nil {
			return *r
		}
		return lease.Record{}
	}
}

// What a lock makes of a lease is tested in package lock. These tests show that it does so over this store.
var lockTests = []namedTest{
	{"each type of lock", func(t *testing.T, b *bench) {
		for kind, want := range map[lock.Type]struct{ again, others, freesOthers bool }{
			lock.SingleEntrant: {false, false, false}, lock.Reentrant: {true, false, false},
			lock.Overriding: {true, true, true},
		} {
			x, a := b.lock(lock.Config{Type: kind, Owner: "x"}), b.lock(lock.Config{Owner: "a"})
			move := func(want bool, do func(context.Context) (bool, error), what string) {
				t.Helper()
				done, err := do(t.Context())
				require.NoError(t, err, "%s: %s", kind, what)
				require.Equal(t, want, done, "%s: %s", kind, what)
			}
			move(true, x.Acquire, "x takes it")
			move(want.again, x.Acquire, "again")
			move(false, a.Acquire, "a does not get it")
			move(false, a.Release, "nor frees it")
			move(true, x.Release, "x frees it")
			move(false, x.Release, "once")
			move(true, a.AcquireForever, "a takes it")
			move(want.others, x.Acquire, "x takes it from a")
			move(want.freesOthers, x.Release, "x frees it")
			move(!want.freesOthers, a.Release, "a frees it, if it still has it")
		}
	}},
	{"a lock for its default duration, another one, for ever", func(t *testing.T, b *bench) {
		clock := NewClock()
		x, a := b.lock(lock.Config{Owner: "x"}), b.lock(lock.Config{Owner: "a", Clock: clock})
		for _, d := range []time.Duration{lock.DefaultDuration, 7 * time.Second, lock.Forever} {
			taken, err := x.AcquireFor(t.Context(), d)
			require.NoError(t, err)
			require.True(t, taken)
			for _, step := range []struct {
				pause time.Duration
				free  bool
			}{{0, false}, {min(d, time.Hour) - time.Millisecond, false}, {time.Millisecond, d != lock.Forever}} {
				clock.Advance(step.pause)
				taken, err = a.Acquire(t.Context())
				require.NoError(t, err)
				require.Equal(t, step.free, taken, "%s", d)
			}
			_, err = a.ForceRelease(t.Context())
			require.NoError(t, err)
			_, err = x.Release(t.Context())
			require.NoError(t, err)
		}
	}},
}

// lock returns a lock over a connection of its own; it is closed at the end of the test.
func (b *bench) lock(c lock.Config) *lock.Lock {
	b.t.Helper()
	store := b.open(c.Owner)
	k, err := lock.New(store, c)
	if _, shared := store.(lease.Limiter); shared && err != nil {
		b.t.Skipf("no lock takes a store that others share: %v", err)
	}
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = k.Close() })
	return k
}
