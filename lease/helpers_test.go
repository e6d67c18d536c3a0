package lease_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	defaults = lease.DefaultSettings()
	ttl      = defaults.HeartbeatTimeout
	window   = defaults.Window()
	interval = defaults.Interval()
	timeout  = defaults.OperationTimeout
)

// world is one store and its parties.
type world struct {
	t     testing.TB
	store *leasetest.Memory
	logs  logtest.Log
}

func newWorld(t testing.TB) *world {
	return &world{t: t, store: leasetest.NewMemory()}
}

// story runs a test over a world of its own, in virtual time.
func story(t *testing.T, told func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { told(t, newWorld(t)) })
}

// tell runs each story under its name.
func tell(t *testing.T, stories map[string]func(*testing.T, *world)) {
	for name, s := range stories {
		t.Run(name, func(t *testing.T) { story(t, s) })
	}
}

func (w *world) view(owner string) *leasetest.Faulty { return w.store.View(owner) }

// lease returns a new lease of owner over its view; it is closed at the end of the test.
func (w *world) lease(owner string, change ...func(*lease.Settings, *lease.Options)) *lease.Lease {
	w.t.Helper()
	return w.leaseOver(w.view(owner), owner, change...)
}

func (w *world) leaseOver(s lease.Store, owner string,
	change ...func(*lease.Settings, *lease.Options)) *lease.Lease {
	w.t.Helper()
	settings, options := defaults, lease.Options{Logger: w.logs.Warnings()}
	for _, c := range change {
		c(&settings, &options)
	}
	l, err := lease.New(s, owner, settings, options)
	require.NoError(w.t, err)
	w.t.Cleanup(l.Close)
	return l
}

// plain acquires a plain lock.
func (w *world) plain(l *lease.Lease) linear.Answer {
	w.t.Helper()
	return linear.AnswerOf(l.Acquire(w.t.Context(), lease.Proposal{}))
}

func (w *world) granted(l *lease.Lease) lease.Record {
	w.t.Helper()
	out := w.plain(l)
	require.Equal(w.t, sbr.Granted, out.Kind, "%v", out)
	require.True(w.t, l.Check())
	return out.Record
}

func (w *world) held(l *lease.Lease, by string) linear.Answer {
	w.t.Helper()
	out := w.plain(l)
	require.Equal(w.t, sbr.Held, out.Kind, "%v", out)
	require.Equal(w.t, by, out.Record.Holder)
	require.NoError(w.t, out.Err)
	return out
}

func (w *world) unknown(l *lease.Lease) linear.Answer {
	w.t.Helper()
	out := w.plain(l)
	require.Equal(w.t, sbr.Unknown, out.Kind, "%v", out)
	require.Error(w.t, out.Err)
	return out
}

// force frees the record of any holder.
func (w *world) force(l *lease.Lease, holder string) {
	w.t.Helper()
	_, _, err := l.ForceRelease(w.t.Context(), holder)
	require.NoError(w.t, err)
}

// unreleased checks that nobody knows what became of a release.
func unreleased(t testing.TB, err error) {
	t.Helper()
	require.Error(t, err)
	require.NotErrorIs(t, err, lease.ErrNotHeld)
}

func (w *world) sure(err error) {
	w.t.Helper()
	require.NoError(w.t, err)
}

func (w *world) record() lease.Record { return w.store.Snapshot().Record }

// verdict is a proposal by writer that lets survivors go on.
func verdict(base uint64, writer string, survivors ...sbr.ID) lease.Proposal {
	return lease.Proposal{Base: base, Verdict: &sbr.Verdict{
		Survivors: survivors, Down: []sbr.ID{"z", "y"}, DecidedBy: sbr.ID(writer), Reason: writer + " decided",
	}}
}

// requests counts what f sends through v.
func requests(v *leasetest.Faulty, f func()) leasetest.Counters {
	before := v.Counters()
	f()
	after := v.Counters()
	return leasetest.Counters{Reads: after.Reads - before.Reads, Writes: after.Writes - before.Writes,
		Watches: after.Watches - before.Watches}
}

// losses collects the ends of grants that nobody has asked for, each time of holding the lease once.
type losses struct {
	mu      sync.Mutex
	held    <-chan struct{}
	reasons []error
	at      []time.Time
}

func (l *losses) follow(out linear.Answer) linear.Answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := out.Grant; g != nil && g.Done() != l.held {
		l.held = g.Done()
		out.Following(l.add)
	}
	return out
}

func (l *losses) add(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reasons, l.at = append(l.reasons, err), append(l.at, time.Now())
}

func (l *losses) all() []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]error(nil), l.reasons...)
}

// Check is meant for hot paths.
func BenchmarkLease_Check(b *testing.B) {
	w := newWorld(b)
	a := w.lease("a")
	w.granted(a)
	b.ReportAllocs()
	for b.Loop() {
		if !a.Check() {
			b.Fatal("not held")
		}
	}
}

// What the algorithm costs over a store that costs nothing.
func BenchmarkLease_AcquireRelease(b *testing.B) {
	w := newWorld(b)
	a := w.lease("a")
	for b.Loop() {
		require.Equal(b, sbr.Granted, linear.AnswerOf(a.Acquire(b.Context(), lease.Proposal{})).Kind)
		require.NoError(b, a.Release(b.Context()))
	}
}
