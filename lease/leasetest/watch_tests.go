package leasetest

import (
	"context"
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
	{"a watch ends with its context", func(t *testing.T, b *bench) {
		w := b.watch("w")
		w.stop()
		require.ErrorIs(t, w.wait(), context.Canceled)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.Error(t, w.store.Watch(ctx, func(lease.Snapshot) {}))
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
		var second lease.Snapshot
		b.eventually(func() (ok bool) {
			var err error
			second, err = s.Write(t.Context(), record("b", 2), first.Version)
			return err == nil
		}, "the store does not come back")
		w.until(second.Version)
	}},
}

// watch is a running Watch.
type watch struct {
	b     *bench
	store lease.Watcher
	stop  context.CancelFunc
	done  chan error

	mu   sync.Mutex
	seen []lease.Snapshot
}

// watch starts one; it ends with the test. A store that cannot be watched skips the test.
func (b *bench) watch(party string) *watch {
	b.t.Helper()
	store, ok := b.open(party).(lease.Watcher)
	if !ok {
		b.t.Skip("the store is no Watcher")
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	w := &watch{b: b, store: store, stop: cancel, done: make(chan error, 1)}
	go func() {
		w.done <- store.Watch(ctx, func(s lease.Snapshot) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.seen = append(w.seen, s)
		})
	}()
	b.t.Cleanup(func() {
		cancel()
		_ = w.wait()
	})
	return w
}

func (w *watch) wait() error {
	select {
	case err := <-w.done:
		w.done <- err
		return err
	case <-time.After(w.b.Patience):
		w.b.t.Error("the watch does not end")
		return nil
	}
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
