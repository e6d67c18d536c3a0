package leasetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
)

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
		require.True(t, errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errors.ErrUnsupported), "%v", err)
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
