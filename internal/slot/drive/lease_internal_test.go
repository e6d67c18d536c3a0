package drive

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/inbox"
	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func openLeasing(t *testing.T, store *leasetest.Memory, owner string) (*leasing, func()) {
	b := inbox.New()
	l, err := lease.New(store.View(owner), owner, lease.Settings{HeartbeatTimeout: 20 * time.Second,
		HeartbeatInterval: 2 * time.Second, OperationTimeout: time.Second}, lease.Options{})
	require.NoError(t, err)
	g := newLeasing(t.Context(), func(context.Context) (*lease.Lease, io.Closer, error) { return l, nil, nil }, b)
	require.NoError(t, g.Open(t.Context()))
	t.Cleanup(g.Close)
	return g, func() { // empties the inbox once something is in it
		<-b.Wake()
		for _, f := range b.Take() {
			f()
		}
	}
}

// What is asked for is done in turn: a release ends the waiting before it, and the next acquire comes after
// it.
func TestLeasing_InTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leasetest.NewMemory()
		holder, _ := openLeasing(t, store, "holder")
		require.Equal(t, sbr.Granted, linear.AnswerOf(holder.lease.Acquire(t.Context(), lease.Proposal{})).Kind)
		g, wait := openLeasing(t, store, "n1")
		var got []string
		g.Acquire(slot.AcquireLease{Attempt: 1}, func(e slot.Event) {
			a := e.(slot.LeaseAnswer)
			got = append(got, a.Outcome.String()+", "+a.Why)
		})
		time.Sleep(time.Minute)
		require.Empty(t, got, "it waits for as long as the holder lives")
		g.Release(func() { got = append(got, "released") })
		g.Acquire(slot.AcquireLease{Attempt: 2}, func(e slot.Event) {
			a := e.(slot.LeaseAnswer)
			got = append(got, a.Outcome.String())
			require.EqualValues(t, 2, a.Attempt)
			require.NotZero(t, a.Token)
		})
		synctest.Wait()
		wait()
		require.Equal(t, []string{"held, held by holder", "released"}, got)
		_ = holder.lease.Release(t.Context())
		wait()
		require.Equal(t, "granted", got[2])
	})
}

// A release whose answer is lost is tried again: the next holder would have to wait until the lease expires.
func TestLeasing_ReleaseIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leasetest.NewMemory()
		g, wait := openLeasing(t, store, "n1")
		g.Acquire(slot.AcquireLease{}, func(slot.Event) {})
		wait()
		require.Equal(t, "n1", store.Snapshot().Record.Holder)
		store.View("n1").SetUnavailable(true)
		go func() {
			time.Sleep(1500 * time.Millisecond) // one release takes at most a second
			store.View("n1").Heal()
		}()
		released := false
		g.Release(func() { released = true })
		wait()
		require.True(t, released)
		require.Empty(t, store.Snapshot().Record.Holder)
	})
}

func TestQuestions_AreAnsweredOnceAndBounded(t *testing.T) {
	d := New(Options[string]{})
	var got []string
	note := func(m string) error { got = append(got, m); return nil }
	first := d.keep(note)
	require.NoError(t, d.answer(first, "yes"))
	require.NoError(t, d.answer(first, "again"))
	old := d.keep(note)
	for range maxQuestions {
		d.keep(note)
	}
	require.NoError(t, d.answer(old, "too late"))
	require.Equal(t, []string{"yes"}, got)
}
