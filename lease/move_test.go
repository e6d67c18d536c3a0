package lease_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/lease/memory"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// places are two stores, and what is in them at first.
func places(old, fresh lease.Record) (a, b *memory.Store, from, to lease.Place) {
	a, b = memory.NewStore(), memory.NewStore()
	for s, r := range map[*memory.Store]lease.Record{a: old, b: fresh} {
		if r.Token > 0 || r.Holder != "" || r.Moved.Away() {
			s.Restore(r)
		}
	}
	return a, b, lease.Place{Store: a, Name: "old"}, lease.Place{Store: b, Name: "new"}
}

var movedRecord = lease.Record{
	Holder: "n1@1", Token: 7, Nonce: "x", TTL: time.Minute,
	Verdict: &sbr.Verdict{Token: 7, Survivors: []sbr.ID{"n1@1"}, Down: []sbr.ID{"n2@1"}, DecidedBy: "n1@1",
		Reason: "a cut"},
}

// party is a lease of that owner, until the test ends.
func party(t *testing.T, s lease.Store, owner string) *lease.Lease {
	t.Helper()
	l, err := lease.New(s, owner, lease.DefaultSettings(), lease.Options{})
	require.NoError(t, err)
	t.Cleanup(l.Close)
	return l
}

func TestMove(t *testing.T) {
	t.Parallel()
	a, b, from, to := places(movedRecord, lease.Record{})
	unsealed := party(t, a, "n1@1")
	before, err := unsealed.Read(t.Context()) // it knows the version, and the lease
	require.NoError(t, err)
	require.Equal(t, uint64(7), before.Token)

	got, err := lease.Move(t.Context(), from, to)
	require.NoError(t, err)
	require.Equal(t, movedRecord, got)
	now, err := b.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, movedRecord, now.Record, "holder, token and verdict")
	again, err := lease.Move(t.Context(), from, to)
	require.NoError(t, err)
	require.Equal(t, got, again)

	// Nobody writes the old one any more, whatever is known of it.
	sealed, err := a.Read(t.Context())
	require.NoError(t, err)
	for what, try := range map[string]func() error{
		"a verdict": func() error {
			_, err := unsealed.Acquire(t.Context(), lease.Proposal{Verdict: &sbr.Verdict{Survivors: []sbr.ID{"n1@1"},
				Down: []sbr.ID{"n3@1"}}, Base: 7, BaseBy: "n1@1"})
			return err
		},
		"a correction": func() error {
			_, err := unsealed.Restore(t.Context(), sbr.Verdict{Token: 9, Survivors: []sbr.ID{"n1@1"}})
			return err
		},
		"a leave": func() error {
			_, err := unsealed.Amend(t.Context(),
				func(v *sbr.Verdict) bool { v.Left = append(v.Left, "n1@1"); return true })
			return err
		},
		"a force-release": func() error { _, _, err := unsealed.ForceRelease(t.Context(), "n1@1"); return err },
		"a reset":         func() error { _, _, err := lease.Reset(t.Context(), a, true); return err },
	} {
		err := try()
		require.ErrorIs(t, err, lease.ErrRefused, what)
		moved := (*lease.MovedError)(nil)
		require.ErrorAs(t, err, &moved, what)
		require.ErrorContains(t, err, "it has moved to new", what)
	}
	still, err := a.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, sealed, still)

	// The chain goes on in the new one, and it comes back as it is then.
	l := party(t, b, "n1@1")
	_, _, err = l.ForceRelease(t.Context(), "n1@1")
	require.NoError(t, err)
	grant, err := l.Acquire(t.Context(), lease.Proposal{})
	require.NoError(t, err)
	require.Equal(t, uint64(8), grant.Token())
	back, err := lease.Move(t.Context(), to, from)
	require.NoError(t, err)
	require.Equal(t, uint64(8), back.Token)
	_, err = l.Read(t.Context())
	require.ErrorContains(t, err, "it has moved to old")
	_, err = unsealed.Read(t.Context())
	require.NoError(t, err)
}

// A watch during the move does not report a record that no party may write.
func TestMove_AWatchGoesSilent(t *testing.T) {
	t.Parallel()
	a, _, from, to := places(movedRecord, lease.Record{})
	interrupted, told := make(chan error, 100), make(chan lease.Record, 100)
	l, err := lease.New(a, "n2@2", lease.DefaultSettings(),
		lease.Options{OnWatch: func(err error) { interrupted <- err }})
	require.NoError(t, err)
	defer l.Close()
	go func() { _ = l.Watch(t.Context(), func(r lease.Record) { told <- r }) }()
	require.Equal(t, uint64(7), (<-told).Token)
	_, err = lease.Move(t.Context(), from, to)
	require.NoError(t, err)
	moved := (*lease.MovedError)(nil)
	require.ErrorAs(t, <-interrupted, &moved)
	require.Equal(t, "new", moved.Moved.To)
	require.Empty(t, told)
}

func TestMove_Refused(t *testing.T) {
	t.Parallel()
	elsewhere := lease.Moved{To: "a third", Store: "third"}
	for says, c := range map[string]struct{ old, fresh lease.Record }{
		"new has a record of its own":        {movedRecord, lease.Record{Token: 1}},
		"has moved from old to a third":      {lease.Record{Token: 1, Moved: elsewhere}, lease.Record{}},
		"of new has itself moved to a third": {movedRecord, lease.Record{Token: 1, Moved: elsewhere}},
	} {
		a, b, from, to := places(c.old, c.fresh)
		_, err := lease.Move(t.Context(), from, to)
		require.ErrorIs(t, err, lease.ErrNotMoved)
		require.ErrorContains(t, err, says)
		for s, was := range map[*memory.Store]lease.Record{a: c.old, b: c.fresh} {
			now, err := s.Read(t.Context())
			require.NoError(t, err)
			require.Equal(t, was, now.Record)
		}
	}
	a, _, from, _ := places(movedRecord, lease.Record{})
	_, err := lease.Move(t.Context(), from, from)
	require.ErrorContains(t, err, "are one store")
	_, err = lease.Move(t.Context(), from, lease.Place{Store: struct{ lease.Store }{a}, Name: "mute"})
	require.ErrorContains(t, err, "stores as mute do not tell which one they are")

	// The Identity of a store may be that of many leases: a seal names one of them.
	_, _, from, to := places(movedRecord, lease.Record{})
	_, err = lease.Move(t.Context(), from, to)
	require.NoError(t, err)
	twin := lease.Place{Store: hooked{memory.NewStore(), to.Store.(lease.Identified),
		func(request func()) error { request(); return nil }}, Name: "twin"}
	_, err = lease.Move(t.Context(), from, twin)
	require.ErrorContains(t, err, "it has moved from old to new")
}

// A holder goes on while its lease moves: its heartbeats make the seal begin anew, the last one is copied,
// and after the seal there is none. It knows that it has lost the lease before anybody gets it in the new
// store (S3).
func TestMove_Held(t *testing.T) {
	t.Parallel()
	story(t, func(t *testing.T, w *world) {
		a, lost := holder(w)
		fresh := leasetest.NewMemory()
		beats := 3 // while the old record is read, read again, and sealed
		old := hooked{w.view("mover"), w.view("mover"), func(request func()) error {
			if beats > 0 {
				beats--
				time.Sleep(interval)
				synctest.Wait()
			}
			request()
			return nil
		}}
		before := w.record().Renewed
		moved, err := lease.Move(t.Context(), lease.Place{Store: old, Name: "old"},
			lease.Place{Store: fresh, Name: "new"})
		require.NoError(t, err)
		require.Equal(t, 2, w.view("mover").Counters().Writes, "the first seal meets the third heartbeat")
		require.Equal(t, "a", moved.Holder)
		require.Equal(t, 3*interval, moved.Renewed.Sub(before), "the last heartbeat is copied")

		b := w.leaseOver(fresh.View("b"), "b")
		for start := time.Now(); ; time.Sleep(time.Second) {
			got := w.plain(b)
			if got.Kind == sbr.Granted {
				require.Equal(t, uint64(2), got.Record.Token)
				break
			}
			require.Equal(t, "a", got.Record.Holder)
			require.Less(t, time.Since(start), 2*ttl)
		}
		require.False(t, a.Check())
		synctest.Wait()
		require.Len(t, lost.all(), 1)
		require.Equal(t, window, lost.at[0].Sub(moved.Renewed.Local()).Truncate(time.Second))
		require.ErrorContains(t, lost.all()[0], "it has moved to new")
	})
}

// Movers that go in both directions, stop anywhere and lose answers, and racers for the lease on both stores:
// at no moment are both records open, and the verdicts are one chain (S1).
func TestMove_TwoStoresNeverBothDecide(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, from, to := places(lease.Record{}, lease.Record{})
		stores := []*memory.Store{a, b}
		var tokens []uint64
		for _, s := range stores {
			s.OnCommit(func(r lease.Record) {
				if n := len(tokens); !r.Moved.Away() && r.Token > 0 && (n == 0 || r.Token != tokens[n-1]) {
					tokens = append(tokens, r.Token)
				}
			})
		}
		movers := []*mover{}
		for range 3 {
			one, other := from, to
			if rapid.Bool().Draw(t, "back") {
				one, other = to, from
			}
			m := startMover(one, other)
			t.Cleanup(m.stop)
			movers = append(movers, m)
		}
		race := func(i int) { // one conditional write, by the rules of a Lease: on what is open
			snap, err := stores[i].Read(context.Background())
			require.NoError(t, err)
			// The new store is open to nobody before the first move: no member may be alone on it (rule 20).
			if snap.Record.Moved.Away() || i == 1 && snap.Record.Token == 0 {
				return
			}
			_, err = stores[i].Write(context.Background(),
				lease.Record{Token: snap.Record.Token + 1, Holder: fmt.Sprint(i)}, snap.Version)
			require.NoError(t, err)
		}
		if rapid.Bool().Draw(t, "used") {
			race(0)
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			switch who := rapid.IntRange(0, len(movers)+1).Draw(t, "who"); {
			case who < len(movers):
				movers[who].next(rapid.Bool().Draw(t, "its answer is lost"))
			default:
				race(who - len(movers))
			}
			opened := 0
			for _, s := range stores {
				snap, err := s.Read(context.Background())
				require.NoError(t, err)
				if snap.Version != "" && !snap.Record.Moved.Away() {
					opened++
				}
			}
			require.LessOrEqual(t, opened, 1, "both records are open")
		}
		// It can be ended, whatever was left behind.
		for _, m := range movers {
			m.stop()
		}
		if _, err := lease.Move(context.Background(), from, to); err != nil {
			require.ErrorIs(t, err, lease.ErrNotMoved)
			_, err = lease.Move(context.Background(), to, from)
			require.NoError(t, err)
			_, err = lease.Move(context.Background(), from, to)
			require.NoError(t, err)
		}
		for i, token := range tokens {
			require.Equal(t, uint64(i+1), token, "the chain of verdicts: %v", tokens)
		}
	})
}

// mover moves a lease, one request at a time.
type mover struct {
	turn        chan bool
	done, ended chan struct{}
	cancel      context.CancelFunc
}

func startMover(from, to lease.Place) *mover {
	ctx, cancel := context.WithCancel(context.Background())
	m := &mover{make(chan bool), make(chan struct{}), make(chan struct{}), cancel}
	stepwise := func(p lease.Place) lease.Place {
		p.Store = hooked{p.Store, p.Store.(lease.Identified), func(request func()) error {
			select {
			case lost := <-m.turn:
				request()
				m.done <- struct{}{}
				if lost {
					return errLost
				}
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
		return p
	}
	go func() {
		defer close(m.ended)
		for ctx.Err() == nil {
			if _, err := lease.Move(ctx, stepwise(from), stepwise(to)); err == nil ||
				errors.Is(err, lease.ErrNotMoved) {
				return
			}
		}
	}()
	return m
}

// next lets it do one more request, unless it has ended.
func (m *mover) next(lost bool) {
	select {
	case m.turn <- lost:
		<-m.done
	case <-m.ended:
	}
}

func (m *mover) stop() {
	m.cancel()
	<-m.ended
}

// Interrupted at any of its requests, with or without effect, a move can be ended by calling it again.
func TestMove_InterruptedAnywhere(t *testing.T) {
	t.Parallel()
	const requests = 11 // four rounds of two reads, and a write in three of them
	for n := range requests {
		for _, effect := range []bool{false, true} {
			_, b, from, to := places(movedRecord, lease.Record{})
			left := n
			failing := func(p lease.Place) lease.Place {
				p.Store = hooked{p.Store, p.Store.(lease.Identified), func(request func()) error {
					if left--; left >= 0 {
						request()
						return nil
					}
					if left == -1 && effect {
						request()
					}
					return errLost
				}}
				return p
			}
			_, err := lease.Move(t.Context(), failing(from), failing(to))
			require.ErrorIs(t, err, errLost, "request %d", n)
			got, err := lease.Move(t.Context(), from, to)
			require.NoError(t, err)
			require.Equal(t, movedRecord, got)
			now, err := b.Read(t.Context())
			require.NoError(t, err)
			require.Equal(t, movedRecord, now.Record)
		}
	}
}

// hooked passes each request to a function, whose error is that its answer is lost.
type hooked struct {
	lease.Store
	lease.Identified
	do func(request func()) error
}

var errLost = errors.New("the answer is lost")

func (h hooked) Read(ctx context.Context) (snap lease.Snapshot, err error) {
	if lost := h.do(func() { snap, err = h.Store.Read(ctx) }); lost != nil {
		return lease.Snapshot{}, lost
	}
	return snap, err
}

func (h hooked) Write(ctx context.Context, r lease.Record, prev lease.Version) (v lease.Version, err error) {
	if lost := h.do(func() { v, err = h.Store.Write(ctx, r, prev) }); lost != nil {
		return "", lost
	}
	return v, err
}
