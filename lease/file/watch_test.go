package file

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/lease"
)

// reports are what a running Watch has told.
type reports struct {
	t    *testing.T
	done chan error
	stop context.CancelFunc

	mu  sync.Mutex
	all []lease.Snapshot
}

// quick is a pace that retries quickly and never reads beside a stream.
var quick = lease.Pace{Retry: time.Millisecond, RetryMax: 5 * time.Millisecond, Poll: time.Millisecond,
	Beside: time.Hour}

func watch(t *testing.T, s *Store) *reports {
	ctx, cancel := context.WithCancel(t.Context())
	r := &reports{t: t, done: make(chan error, 1), stop: cancel}
	go func() {
		r.done <- lease.Follow(ctx, s, quick, s.log, func(got lease.Snapshot) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.all = append(r.all, got)
		})
	}()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-r.done, context.Canceled)
	})
	return r
}

func (r *reports) tokens() []uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	tokens := make([]uint64, len(r.all))
	for i, s := range r.all {
		tokens[i] = s.Record.Token
	}
	return tokens
}

// until waits until the last report has the token.
func (r *reports) until(token uint64) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		all := r.tokens()
		return len(all) > 0 && all[len(all)-1] == token
	}, waitFor, time.Millisecond, "token %d is not reported", token)
}

func TestWatch_NotificationsAlone(t *testing.T) {
	writer := newStore(t, newPath(t))
	w := watch(t, newStore(t, writer.path))
	w.until(0)
	prev := mustWrite(t, writer, record("a", 1), "")
	w.until(1)
	for token := uint64(2); token <= 30; token++ {
		prev = mustWrite(t, writer, record("a", token), prev.Version)
	}
	w.until(30)
	// The same record may be told twice: a file system sets the change time of a renamed file, which is part
	// of its version, after it can be seen.
	require.IsNonDecreasing(t, w.tokens(), "it never goes backwards")

	require.NoError(t, os.Remove(writer.path))
	w.until(0)
	mustWriteFile(t, writer.path, string(mustEncode(t, record("hand", 7))))
	w.until(7)
	mustWriteFile(t, writer.path, string(mustEncode(t, record("hand", 8)))) // in place
	w.until(8)
}

func TestWatch_LooksWhereThereAreNoNotifications(t *testing.T) {
	var log logtest.Log
	writer := newStore(t, newPath(t))
	s := newLoggingStore(t, writer.path, log.Logger())
	var blind atomic.Bool
	blind.Store(true)
	s.system.notify = func(dir string) (*fsnotify.Watcher, error) {
		if blind.Load() {
			return nil, syscall.ENOSPC
		}
		return notify(dir)
	}
	w := watch(t, s)
	prev := mustWrite(t, writer, record("a", 1), "")
	w.until(1)
	mustWrite(t, writer, record("a", 2), prev.Version)
	w.until(2)
	require.NoError(t, os.Remove(writer.path))
	w.until(0)
	require.Len(t, log.With("no notifications of changes"), 1, "said once: %s", log.String())
	require.Contains(t, log.String(), "max_user_watches")
	blind.Store(false)
	require.Eventually(t, func() bool { return len(log.With("watching again")) == 1 }, waitFor, time.Millisecond)
}

// The directory is what is watched. If it is replaced, or away, the watch finds the new one.
func TestWatch_TheDirectoryIsReplaced(t *testing.T) {
	var log logtest.Log
	path := filepath.Join(t.TempDir(), "state", "payments.lease")
	dir := filepath.Dir(path)
	writer := newStore(t, path)
	s := newLoggingStore(t, path, log.Logger())
	w := watch(t, s)
	require.Eventually(t, func() bool { return len(log.With("mkdir -p")) == 1 }, waitFor, time.Millisecond,
		"not there yet")
	require.Empty(t, w.tokens(), "a directory that is away is not a record that is absent")

	for i := range 3 { // gone and made anew
		require.NoError(t, os.Mkdir(dir, 0o755))
		token := uint64(10 + i)
		mustWrite(t, writer, record("a", token), "")
		w.until(token)
		require.NoError(t, os.RemoveAll(dir))
	}
	require.NoError(t, os.Mkdir(dir, 0o755))
	prev := mustWrite(t, writer, record("a", 20), "")
	w.until(20)
	require.NoError(t, os.Rename(dir, dir+".old")) // swapped for another one, at once
	require.NoError(t, os.Mkdir(dir, 0o755))
	w.until(0)
	require.NoError(t, os.Remove(dir))
	require.NoError(t, os.Rename(dir+".old", dir))
	w.until(20)
	mustWrite(t, writer, record("a", 21), mustRead(t, writer).Version)
	w.until(21)
	require.NotEqual(t, prev.Version, mustRead(t, writer).Version)
}

func TestWatch_PassesOverWhatItCannotRead(t *testing.T) {
	var log logtest.Log
	writer := newStore(t, newPath(t))
	s := newLoggingStore(t, writer.path, log.Logger())
	mustWrite(t, writer, record("a", 1), "")
	w := watch(t, s)
	w.until(1)
	mustWriteFile(t, writer.path, "{")
	require.Eventually(t, func() bool { return len(log.With("not a readable record")) > 0 }, waitFor,
		time.Millisecond)
	mustWriteFile(t, writer.path, string(mustEncode(t, record("a", 2))))
	w.until(2)
	require.Equal(t, []uint64{1, 2}, w.tokens(), "damage is not a deletion")
	require.Eventually(t, func() bool { return len(log.With("watching again")) == 1 }, waitFor, time.Millisecond)
}

// Not even a disk that does not answer holds a watch up when it is to end.
func TestWatch_EndsAlthoughTheDiskDoesNotAnswer(t *testing.T) {
	s := newStore(t, newPath(t))
	asked, resume := make(chan struct{}), make(chan struct{})
	s.system.notify = func(dir string) (*fsnotify.Watcher, error) { close(asked); <-resume; return notify(dir) }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Watch(ctx, func(lease.Snapshot) {}) }()
	<-asked
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	close(resume) // its late notifier is closed: goleak would see it
	require.Eventually(t, func() bool { return len(s.reading) == 0 }, waitFor, time.Millisecond)
}

func TestWatch_LostNotifications(t *testing.T) {
	writer := newStore(t, newPath(t))
	s := newStore(t, writer.path)
	broken := make(chan *fsnotify.Watcher, 10)
	s.system.notify = func(dir string) (*fsnotify.Watcher, error) {
		n, err := notify(filepath.Dir(dir)) // it tells of another directory: nothing of ours
		broken <- n
		return n, err
	}
	w := watch(t, s)
	n := <-broken
	w.until(0)
	mustWrite(t, writer, record("a", 1), "")
	n.Errors <- errors.New("overflow")
	w.until(1)
}
