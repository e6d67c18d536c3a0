package leasetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// What the lease makes of a store is tested in package lease. These tests show that it does so over this one.
var leaseTests = []namedTest{
	{"of many clients one is granted", func(t *testing.T, b *bench) {
		var wg sync.WaitGroup
		answers := make([]linear.Answer, contenders)
		for i := range contenders {
			l := b.lease(fmt.Sprintf("client-%02d", i), nil)
			wg.Go(func() { answers[i] = linear.AnswerOf(l.Acquire(t.Context(), lease.Proposal{})) })
		}
		wg.Wait()
		granted := ""
		for _, a := range answers {
			if a.Kind == sbr.Granted {
				require.Empty(t, granted, "a second grant")
				granted = a.Record.Holder
			}
		}
		require.NotEmpty(t, granted, "no grant: %v", answers)
		for _, out := range answers {
			require.NotEqual(t, sbr.Unknown, out.Kind, "%v", out)
			require.Equal(t, granted, out.Record.Holder)
		}
	}},
	{"leaves are recorded beside a verdict, whoever holds the lease", func(t *testing.T, b *bench) {
		a, o := b.lease("a", nil), b.lease("b", nil)
		held := b.granted(a, verdict(0, "a"))
		for _, l := range []*lease.Lease{o, a} {
			r, err := l.Amend(t.Context(), func(v *sbr.Verdict) bool { return v.Leave([]sbr.ID{sbr.ID(l.Owner())}, []sbr.ID{"heir"}) })
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
	{"held by another until it is released", func(t *testing.T, b *bench) {
		a, o := b.lease("a", nil), b.lease("b", nil)
		b.granted(a, lease.Proposal{})
		require.Equal(t, "a", b.held(o, lease.Proposal{}).Holder)
		require.ErrorIs(t, o.Release(t.Context()), lease.ErrNotHeld, "not the other's to release")
		require.True(t, a.Check())
		require.Equal(t, "a", b.held(o, lease.Proposal{}).Holder)
		require.NoError(t, a.Release(t.Context()))
		require.False(t, a.Check())
		require.ErrorIs(t, a.Release(t.Context()), lease.ErrNotHeld)
		require.EqualValues(t, 2, b.granted(o, lease.Proposal{}).Token)
		require.Equal(t, "b", b.held(a, lease.Proposal{}).Holder)
	}},
	{"verdicts form a chain", func(t *testing.T, b *bench) {
		a, o := b.lease("a", nil), b.lease("b", nil)
		b.granted(a, verdict(0, "a", "a", "b", "c"))
		require.NoError(t, a.Release(t.Context()))
		before := b.read(b.open("judge"))
		late := b.held(o, verdict(0, "b", "b"))
		require.Equal(t, before.Version, b.read(b.open("judge")).Version, "a superseded base writes nothing")
		require.Empty(t, late.Holder)
		require.Equal(t, []sbr.ID{"a", "b", "c"}, late.Verdict.Survivors)
		next := b.granted(o, verdict(late.Token, "b", "a", "b"))
		require.EqualValues(t, 2, next.Verdict.Token)
		require.NoError(t, o.Release(t.Context()))
		kept := b.granted(a, lease.Proposal{})
		require.EqualValues(t, 3, kept.Token)
		require.Equal(t, next.Verdict, kept.Verdict, "a plain lock leaves the verdict alone")
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
	{"concurrent calls on one instance are all answered", func(t *testing.T, b *bench) {
		a := b.lease("a", nil)
		var wg sync.WaitGroup
		for i := range 24 {
			wg.Go(func() {
				switch i % 4 {
				case 0:
					_ = a.Release(t.Context())
				case 1:
					_, _ = a.Read(t.Context())
				default:
					if out := linear.AnswerOf(a.Acquire(t.Context(), lease.Proposal{})); out.Kind != sbr.Granted {
						t.Errorf("nobody else wants it: %v", out)
					}
				}
			})
		}
		wg.Wait()
	}},
}

// verdict is a proposal by writer.
func verdict(base uint64, writer sbr.ID, survivors ...sbr.ID) lease.Proposal {
	return lease.Proposal{Base: base, Verdict: &sbr.Verdict{Survivors: survivors, DecidedBy: writer, Reason: string(writer) + " decided"}}
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
		f, is := s.(*Faulty)
		if !is {
			f = NewFaulty(s)
		}
		b.timed, s = append(b.timed, f), f
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
