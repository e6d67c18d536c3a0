package lease_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
)

// grantOf acquires a plain lock.
func (w *world) grantOf(l *lease.Lease) *lease.Grant {
	w.t.Helper()
	g, err := l.Acquire(w.t.Context(), lease.Proposal{})
	require.NoError(w.t, err)
	require.NoError(w.t, g.Err())
	require.NoError(w.t, g.Lost())
	return g
}

func TestGrant_SaysHowItHasEnded(t *testing.T) {
	for name, c := range map[string]struct {
		end              func(*world, *lease.Lease)
		released, closed bool
	}{
		"released":         {func(w *world, a *lease.Lease) { w.sure(a.Release(w.t.Context())) }, true, false},
		"forced by itself": {func(w *world, a *lease.Lease) { w.force(a, "") }, true, false},
		"closed":           {func(_ *world, a *lease.Lease) { a.Close() }, false, true},
		"replaced":         {func(w *world, _ *lease.Lease) { w.force(w.lease("b"), "a") }, false, false},
		"its time is over": {func(w *world, _ *lease.Lease) { w.view("a").SetUnavailable(true) }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, w *world) {
				a := w.lease("a")
				g := w.grantOf(a)
				c.end(w, a)
				<-g.Done()
				require.ErrorIs(t, g.Err(), lease.ErrLost)
				is := assert.ErrorIs
				if !c.released {
					is = assert.NotErrorIs
				}
				is(t, g.Err(), lease.ErrReleased)
				assert.Equal(t, c.released || c.closed, g.Lost() == nil)
				if is = assert.ErrorIs; !c.closed {
					is = assert.NotErrorIs
				}
				is(t, g.Err(), lease.ErrClosed)
			})
		})
	}
}

func TestGrant(t *testing.T) { tell(t, grantStories) }

var grantStories = map[string]func(*testing.T, *world){
	"all of one time of holding end together": func(t *testing.T, w *world) {
		a := w.lease("a")
		first := w.grantOf(a)
		second, err := a.Acquire(t.Context(), verdict(1, "a", "a"))
		require.NoError(t, err)
		assert.Equal(t, first.Done(), second.Done())
		assert.EqualValues(t, []uint64{1, 2}, []uint64{first.Token(), second.Token()})
		require.NoError(t, first.Release(t.Context()))
		<-second.Done()
		third := w.grantOf(a)
		require.NotEqual(t, first.Done(), third.Done())
		assert.NoError(t, third.Err())
	},
	"release leaves a later one alone": func(t *testing.T, w *world) {
		a := w.lease("a")
		old := w.grantOf(a)
		require.NoError(t, old.Release(t.Context()))
		require.ErrorIs(t, old.Release(t.Context()), lease.ErrNotHeld)
		next := w.grantOf(a)
		n := requests(w.view("a"), func() { require.ErrorIs(t, old.Release(t.Context()), lease.ErrNotHeld) })
		assert.Zero(t, n)
		assert.NoError(t, next.Err())
		assert.True(t, a.Check())
	},
	// The release of an old grant waits for its turn while an Acquire is under way: what the Acquire brings is
	// not the release's own.
	"release leaves one alone that is under way": func(t *testing.T, w *world) {
		released := make(chan error, 1)
		store := &pausingStore{Faulty: w.view("a"), done: true}
		a := w.leaseOver(store, "a")
		old := w.grantOf(a)
		require.NoError(t, old.Release(t.Context()))
		store.done, store.pause = false, func() {
			go func() { released <- old.Release(t.Context()) }()
			time.Sleep(time.Millisecond)
		}
		next := w.grantOf(a)
		require.ErrorIs(t, <-released, lease.ErrNotHeld)
		assert.NoError(t, next.Err())
		assert.Equal(t, "a", w.record().Holder)
	},
	// A read that is answered while the grant is under way finds the lease gone: the grant has ended when Acquire
	// returns it, or soon.
	"may end before its acquire returns": func(t *testing.T, w *world) {
		var a *lease.Lease
		store := &pausingStore{Faulty: w.view("a"), pause: func() {
			time.AfterFunc(time.Millisecond, func() {
				w.store.Restore(lease.Record{Holder: "x", Token: 5})
				_, _ = a.Read(t.Context())
			})
		}}
		a = w.leaseOver(store, "a")
		g, err := a.Acquire(t.Context(), lease.Proposal{})
		require.NoError(t, err)
		<-g.Done()
		assert.ErrorIs(t, g.Err(), lease.ErrLost)
		assert.False(t, a.Check())
	},
}

func TestGrant_ContextEndsWithTheGrantOrItsCaller(t *testing.T) {
	type key struct{}
	story(t, func(t *testing.T, w *world) {
		g := w.grantOf(w.lease("a"))
		ctx, giveUp := context.WithTimeout(context.WithValue(t.Context(), key{}, "value"), time.Hour)
		defer giveUp()
		mine, cancelMine := g.Context(ctx)
		other, cancelOther := g.Context(t.Context())
		stopped, cancelStopped := g.Context(ctx)
		defer cancelMine()
		defer cancelOther()
		assert.Equal(t, "value", mine.Value(key{}))
		want, _ := ctx.Deadline()
		deadline, ok := mine.Deadline()
		assert.True(t, ok)
		assert.Equal(t, want, deadline)
		cancelStopped()
		assert.ErrorIs(t, stopped.Err(), context.Canceled)
		assert.NoError(t, mine.Err())
		giveUp()
		<-mine.Done()
		assert.ErrorIs(t, context.Cause(mine), context.Canceled)
		assert.NoError(t, other.Err())
		require.NoError(t, g.Release(t.Context()))
		assert.ErrorIs(t, context.Cause(other), lease.ErrReleased)
		late, cancel := g.Context(t.Context())
		defer cancel()
		assert.ErrorIs(t, context.Cause(late), lease.ErrReleased)
	})
}
