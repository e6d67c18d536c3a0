package leasetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

var storeTests = []namedTest{
	{"an absent record is the zero snapshot", func(t *testing.T, b *bench) {
		require.Equal(t, lease.Snapshot{}, b.read(b.open("a")))
	}},
	{"what is created can be read by everybody", func(t *testing.T, b *bench) {
		got := b.write(b.open("a"), record("a", 1), "")
		for _, party := range []string{"a", "b"} {
			read := b.read(b.open(party))
			require.Equal(t, got.Version, read.Version)
			b.same(got.Record, read.Record)
		}
	}},
	{"what exists is not created again", func(t *testing.T, b *bench) {
		b.write(b.open("a"), record("a", 1), "")
		b.conflict(b.open("b"), record("b", 1), "")
		b.conflict(b.open("a"), record("a", 1), "")
	}},
	{"an update of the present version works", func(t *testing.T, b *bench) {
		a, o := b.open("a"), b.open("b")
		first := b.write(a, record("a", 1), "")
		second := b.write(o, record("b", 2), first.Version)
		require.NotEqual(t, first.Version, second.Version)
		b.same(record("b", 2), b.read(a).Record)
	}},
	{"an update of an old version is a conflict", func(t *testing.T, b *bench) {
		a, o := b.open("a"), b.open("b")
		first := b.write(a, record("a", 1), "")
		second := b.write(a, record("a", 2), first.Version)
		b.conflict(o, record("b", 3), first.Version)
		b.conflict(a, record("a", 3), first.Version)
		b.write(o, record("b", 3), second.Version)
	}},
	{"an equal write is a write", func(t *testing.T, b *bench) {
		a := b.open("a")
		first := b.write(a, record("a", 1), "")
		b.write(a, record("a", 1), first.Version)
		b.conflict(b.open("b"), record("a", 1), first.Version)
	}},
	{"nothing is lost in storage", storeRoundTrip},
	{"a large verdict fits", func(t *testing.T, b *bench) {
		a := b.open("a")
		r := record("a", 1)
		r.Verdict.Survivors = members(largeVerdict)
		b.write(a, r, "")
		b.same(r, b.read(b.open("b")).Record)
	}},
	{"a verdict that is too large is refused, not cut", storeTooLarge},
	{"a snapshot shares nothing with the store", func(t *testing.T, b *bench) {
		a := b.open("a")
		r := record("a", 1)
		got := b.write(a, r, "")
		r.Verdict.Survivors[0], got.Record.Verdict.Survivors[0] = "x", "x"
		read := b.read(a)
		b.same(record("a", 1), read.Record)
		read.Record.Verdict.Survivors[0] = "x"
		b.same(record("a", 1), b.read(a).Record)
	}},
	{"of many creators one wins", func(t *testing.T, b *bench) { b.race("") }},
	{"of many writers one wins", func(t *testing.T, b *bench) {
		b.race(b.write(b.open("first"), record("first", 1), "").Version)
	}},
	{"no update is lost", storeCounter},
	{"all parties name one store", func(t *testing.T, b *bench) {
		a, says := b.open("a").(lease.Identified)
		if !says {
			return // it is not compared
		}
		id, err := a.Identity(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, id)
		b.write(b.open("b"), record("b", 1), "")
		again, err := b.open("c").(lease.Identified).Identity(t.Context())
		require.NoError(t, err)
		require.Equal(t, id, again, "whatever the record is")
	}},
	{"a cancelled context ends a request", func(t *testing.T, b *bench) {
		a := b.open("a")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := a.Read(ctx)
		require.Error(t, err)
		_, err = a.Write(ctx, record("a", 1), "")
		require.Error(t, err)
		require.NotErrorIs(t, err, lease.ErrConflict)
	}},
	{"after a deletion", func(t *testing.T, b *bench) {
		if b.Delete == nil {
			t.Skip("the harness cannot delete")
		}
		a := b.open("a")
		first := b.write(a, record("a", 1), "")
		b.Delete(t)
		require.Equal(t, lease.Snapshot{}, b.read(a))
		b.conflict(a, record("a", 2), first.Version) // and does not create it anew
		again := b.write(a, record("b", 1), "")
		require.NotEqual(t, first.Version, again.Version)
		b.conflict(a, record("a", 2), first.Version)
	}},
}

func storeRoundTrip(t *testing.T, b *bench) {
	free, plain, forever, bare := record("", 3), record("a", 4), record("a", 5), lease.Record{Token: 6}
	plain.Verdict, forever.TTL = nil, 0
	odd, huge := record("payments-7d4b9c6f5d-abcde@1700000000000", 7), record("a", lease.MaxToken)
	odd.TTL, odd.Verdict.Partial, odd.Verdict.Down = 1500*time.Millisecond, true, nil
	huge.Verdict = &sbr.Verdict{Token: lease.MaxToken - 1}
	left := record("", 8)
	left.Verdict.Left, left.Verdict.Heirs = []sbr.ID{"n2@1", "n1@1"}, []sbr.ID{"n4@1"}
	a, o := b.open("a"), b.open("b")
	var prev lease.Version
	moved := record("a", 9)
	moved.Moved = lease.Moved{To: "another store", Store: "it", At: moved.Renewed, Reserved: true}
	for _, r := range []lease.Record{record("a", 1), free, plain, forever, bare, odd, huge, left, moved, {}} {
		got := b.write(a, r, prev)
		read := b.read(o)
		require.Equal(t, got.Version, read.Version)
		b.same(r, read.Record)
		prev = got.Version
	}
}

func storeTooLarge(t *testing.T, b *bench) {
	a := b.open("a")
	first := b.write(a, record("a", 1), "")
	r := record("a", 2)
	r.Verdict.Survivors = members(50_000)
	_, err := a.Write(t.Context(), r, first.Version)
	if err == nil {
		b.same(r, b.read(a).Record)
		return
	}
	require.ErrorIs(t, err, lease.ErrTooLarge)
	require.ErrorIs(t, err, lease.ErrRefused)
	require.Equal(t, first.Version, b.read(a).Version)
}

// race lets all clients write over prev at once.
func (b *bench) race(prev lease.Version) {
	b.t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, contenders)
	start := make(chan struct{})
	for i := range contenders {
		party := fmt.Sprintf("racer-%02d", i)
		s := b.open(party)
		wg.Go(func() {
			<-start
			_, errs[i] = s.Write(b.t.Context(), record(party, 2), prev)
		})
	}
	close(start)
	wg.Wait()
	winner := ""
	for i, err := range errs {
		if err == nil {
			require.Empty(b.t, winner, "a second winner")
			winner = fmt.Sprintf("racer-%02d", i)
			continue
		}
		require.ErrorIs(b.t, err, lease.ErrConflict)
	}
	require.NotEmpty(b.t, winner, "no winner")
	b.same(record(winner, 2), b.read(b.open("judge")).Record)
}

// storeCounter counts by compare-and-swap from many sides.
func storeCounter(t *testing.T, b *bench) {
	const parties, each = 6, 10
	var wg sync.WaitGroup
	for i := range parties {
		s := b.open(fmt.Sprintf("counter-%d", i))
		wg.Go(func() {
			for done := 0; done < each; {
				got, err := s.Read(t.Context())
				if err == nil {
					_, err = s.Write(t.Context(), record("a", got.Record.Token+1), got.Version)
				}
				switch {
				case err == nil:
					done++
				case !errors.Is(err, lease.ErrConflict):
					t.Errorf("counter: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, parties*each, b.read(b.open("judge")).Record.Token)
}

var watchTests = []namedTest{
	{"a watch reports the present and every end of a change", func(t *testing.T, b *bench) {
		a := b.open("a")
		first := b.write(a, record("a", 1), "")
		w := b.watch("w")
		w.until(first.Version)
		prev := first.Version
		for token := uint64(2); token < 6; token++ {
			prev = b.write(a, record("a", token), prev).Version
			w.until(prev)
		}
		for range 20 {
			prev = b.write(a, record("b", 7), prev).Version
		}
		w.until(prev)
		b.same(record("b", 7), w.last().Record)
	}},
	{"a watch of an absent record reports its creation", func(t *testing.T, b *bench) {
		w := b.watch("w")
		w.until(b.write(b.open("a"), record("a", 1), "").Version)
	}},
	{"every watcher is told", func(t *testing.T, b *bench) {
		var all []*watch
		for i := range 5 {
			all = append(all, b.watch(string(rune('u'+i))))
		}
		got := b.write(b.open("a"), record("a", 1), "")
		for _, w := range all {
			w.until(got.Version)
		}
	}},
	{"a stream ends with its context", func(t *testing.T, b *bench) {
		store, ok := b.open("w").(lease.Watcher)
		if !ok {
			t.Skip("the store is no Watcher")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		err := store.Watch(ctx, func(lease.Snapshot) {})
		require.Error(t, err)
		require.True(t, errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errors.ErrUnsupported), "%v",
			err)
	}},
	{"a watch reports a deletion", func(t *testing.T, b *bench) {
		if b.Delete == nil {
			t.Skip("the harness cannot delete")
		}
		a := b.open("a")
		w := b.watch("w")
		w.until(b.write(a, record("a", 1), "").Version)
		b.Delete(t)
		w.until("")
		w.until(b.write(a, record("b", 1), "").Version)
	}},
	{"a watch survives a broken connection", func(t *testing.T, b *bench) {
		if b.Interrupt == nil {
			t.Skip("the harness cannot interrupt")
		}
		w := b.watch("w")
		first := b.write(b.open("a"), record("a", 1), "")
		w.until(first.Version)
		b.Interrupt(t)
		s := b.open("b")
		var second lease.Version
		b.eventually(func() (ok bool) {
			var err error
			second, err = s.Write(t.Context(), record("b", 2), first.Version)
			return err == nil
		}, "the store does not come back")
		w.until(second)
	}},
}

// watch is a store that is followed.
type watch struct {
	b *bench

	mu   sync.Mutex
	seen []lease.Snapshot
}

// watch starts one; it ends with the test.
func (b *bench) watch(party string) *watch {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	w, done := &watch{b: b}, make(chan error, 1)
	store := b.open(party)
	go func() {
		done <- lease.Follow(ctx, store, lease.Pace{Poll: 10 * time.Millisecond}, nil, func(s lease.Snapshot) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.seen = append(w.seen, s)
		})
	}()
	b.t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			require.ErrorIs(b.t, err, context.Canceled)
		case <-time.After(b.Patience):
			b.t.Error("the watch does not end")
		}
	})
	return w
}

func (w *watch) last() lease.Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.seen) == 0 {
		return lease.Snapshot{Version: "nothing yet"}
	}
	return w.seen[len(w.seen)-1]
}

// until waits until the newest report is that of version v.
func (w *watch) until(v lease.Version) {
	w.b.t.Helper()
	w.b.eventually(func() bool { return w.last().Version == v }, "version %q was not reported", v)
}
