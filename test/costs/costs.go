package costs

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/test/faults"
)

// Target is a store on a real server, and the other locks there.
type Target struct {
	// Address is where the server listens.
	Address string
	// Open returns a store of the record of that name on the server at that address.
	Open func(b *testing.B, at, name string) lease.Store
	// Bare returns the same conditional write by the bare driver: each call of it is one, of such a text as a
	// lease writes.
	Bare func(b *testing.B, at, name, text string) func(context.Context) error
	// Written is how many writes the server has seen.
	Written func(b *testing.B) int
	// Requests is how many requests A's client has sent; nil: they are counted as round trips.
	Requests func() int
	// Others are the other locks, by name.
	Others map[string]func(b *testing.B, at string, ttl time.Duration) Lock
}

// Lock is another lock: taken and given back, or left by a holder that crashes.
type Lock interface {
	Lock(ctx context.Context) error
	Unlock(ctx context.Context) error
	Crash()
}

const (
	samples  = 300
	watchers = 100
	ttl      = 4 * time.Second
)

// Run is the benchmark.
func Run(b *testing.B, t *Target) {
	b.Run("acquire", t.acquire)
	b.Run("verdict", t.Verdict)
	b.Run("idle", t.idle)
	b.Run("take-over", t.takeOver)
	for name, open := range t.Others {
		b.Run("other "+name, func(b *testing.B) { t.other(b, open) })
	}
}

// proxied is a proxy that counts, for the length of a benchmark.
func (t *Target) proxied(b *testing.B) *faults.Proxy {
	end := &faults.T{}
	b.Cleanup(end.Finish)
	return faults.NewProxy(end, t.Address, func() {})
}

func (t *Target) requests(proxy *faults.Proxy) func() int {
	if t.Requests != nil {
		return t.Requests
	}
	return proxy.Turns
}

func newLease(b *testing.B, s lease.Store, owner string, settings lease.Settings) *lease.Lease {
	l, err := lease.New(s, owner, settings, lease.Options{})
	require.NoError(b, err)
	b.Cleanup(l.Close)
	return l
}

// acquire compares a warm acquire with the bare conditional write, in turn, and counts its round trips.
func (t *Target) acquire(b *testing.B) {
	l := newLease(b, t.Open(b, t.Address, "acquire"), "a", lease.DefaultSettings())
	bare := t.Bare(b, t.Address, "bare", text(b))
	proxy := t.proxied(b)
	counted := newLease(b, t.Open(b, proxy.Address(), "counted"), "a", lease.DefaultSettings())
	for _, warm := range []*lease.Lease{l, counted} {
		take(b, warm)
	}
	var acquires, writes []time.Duration
	acquire := func() {
		acquires = append(acquires, timed(b, func(ctx context.Context) error { _, err := l.Acquire(ctx, lease.Proposal{}); return err }))
		require.NoError(b, l.Release(b.Context()))
	}
	write := func() { writes = append(writes, timed(b, bare)) }
	turns, requests := 0, t.requests(proxy)
	for b.Loop() {
		for i := range samples { // what comes first finds the server, and this process, in another state
			if i%2 == 0 {
				acquire()
				write()
			} else {
				write()
				acquire()
			}
		}
		for range samples {
			before := requests()
			_, err := counted.Acquire(b.Context(), lease.Proposal{})
			require.NoError(b, err)
			turns += requests() - before
			require.NoError(b, counted.Release(b.Context()))
		}
	}
	b.ReportMetric(float64(turns)/float64(len(acquires)), "requests/acquire")
	b.ReportMetric(Millis(Quantile(acquires, 50)), "ms/acquire-p50")
	b.ReportMetric(Millis(Quantile(writes, 50)), "ms/bare-write-p50")
	b.ReportMetric(float64(Quantile(acquires, 50))/float64(Quantile(writes, 50)), "x-bare-write")
}

// text is the record of a lease that is held.
func text(b *testing.B) string {
	settings := lease.DefaultSettings()
	text, err := lease.MarshalRecord(lease.Record{
		Holder: "a", Token: 1, Nonce: rand.Text(), TTL: settings.HeartbeatTimeout, Acquired: time.Now(),
		Renewed: time.Now(),
	})
	require.NoError(b, err)
	return string(text)
}

func take(b *testing.B, l *lease.Lease) {
	_, err := l.Acquire(b.Context(), lease.Proposal{})
	require.NoError(b, err)
	require.NoError(b, l.Release(b.Context()))
}

func timed(b *testing.B, f func(context.Context) error) time.Duration {
	start := time.Now()
	err := f(b.Context())
	took := time.Since(start)
	require.NoError(b, err)
	return took
}

// Verdict measures the time from the answer to the write of a verdict until each of 100 watchers has seen it.
func (t *Target) Verdict(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	type sight struct {
		token uint64
		at    time.Time
	}
	seen := make(chan sight, 10*watchers)
	writer := newLease(b, t.Open(b, t.Address, "verdict"), "writer", lease.DefaultSettings())
	write := func(base uint64) uint64 {
		g, err := writer.Acquire(b.Context(), lease.Proposal{Base: base, Verdict: &sbr.Verdict{
			Survivors: []sbr.ID{"writer"}, Down: []sbr.ID{"x"}, DecidedBy: "writer", Reason: "benchmark",
		}})
		require.NoError(b, err)
		return g.Token()
	}
	token := write(0)
	for i := range watchers {
		l := newLease(b, t.Open(b, t.Address, "verdict"), fmt.Sprintf("w%d", i), lease.DefaultSettings())
		running.Go(func() { _ = l.Watch(ctx, func(r lease.Record) { seen <- sight{r.Token, time.Now()} }) })
	}
	all := func() (at []time.Time) {
		for len(at) < watchers {
			if s := <-seen; s.token == token {
				at = append(at, s.at)
			}
		}
		return at
	}
	all()
	var delays []time.Duration
	for b.Loop() {
		for range 10 {
			token = write(token)
			written := time.Now()
			for _, at := range all() {
				delays = append(delays, max(0, at.Sub(written)))
			}
		}
	}
	for _, q := range []int{50, 99, 100} {
		b.ReportMetric(Millis(Quantile(delays, q)), fmt.Sprintf("ms/seen-p%d", q))
	}
}

// idle counts the writes of ten members that watch a free lease.
func (t *Target) idle(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	take(b, newLease(b, t.Open(b, t.Address, "idle"), "z", lease.DefaultSettings()))
	for i := range 10 {
		l := newLease(b, t.Open(b, t.Address, "idle"), fmt.Sprintf("w%d", i), lease.DefaultSettings())
		running.Go(func() { _ = l.Watch(ctx, func(lease.Record) {}) })
	}
	pause(b, 2*time.Second) // statistics may come late
	before := t.Written(b)
	for b.Loop() {
		pause(b, 10*time.Second)
	}
	b.ReportMetric(float64(t.Written(b)-before), "writes")
}

// pause lets real time pass: it is what is measured.
func pause(b *testing.B, d time.Duration) {
	select {
	case <-b.Context().Done():
	case <-time.After(d):
	}
}

// takeOver is from a holder's crash until another owner holds the lease, over the time-to-live. The medians
// of five.
func (t *Target) takeOver(b *testing.B) {
	settings := lease.Settings{HeartbeatTimeout: ttl, HeartbeatInterval: ttl * 2 / 15,
		OperationTimeout: time.Second}
	var took []time.Duration
	for b.Loop() {
		for range 5 {
			name := fmt.Sprintf("crash-%d", len(took))
			holder := newLease(b, t.Open(b, t.Address, name), "a", settings)
			next := newLease(b, t.Open(b, t.Address, name), "b", settings)
			_, err := holder.Acquire(b.Context(), lease.Proposal{})
			require.NoError(b, err)
			granted := make(chan time.Time, 1)
			go func() {
				if _, err := next.AcquireWait(b.Context(), lease.Proposal{}); err == nil {
					granted <- time.Now()
				}
			}()
			pause(b, ttl)
			holder.Close()
			crashed := time.Now()
			took = append(took, (<-granted).Sub(crashed))
			next.Close()
		}
	}
	b.ReportMetric(float64(Quantile(took, 50))/float64(ttl), "ttl/take-over")
}

// other measures another lock: round trips, latency, and how long after its holder's host vanished another
// owner gets it.
func (t *Target) other(b *testing.B, open func(*testing.B, string, time.Duration) Lock) {
	proxy := t.proxied(b)
	counted, plain := open(b, proxy.Address(), ttl), open(b, t.Address, ttl)
	for _, warm := range []Lock{counted, plain} {
		require.NoError(b, warm.Lock(b.Context()))
		require.NoError(b, warm.Unlock(b.Context()))
	}
	var locks []time.Duration
	turns, requests := 0, t.requests(proxy)
	for b.Loop() {
		for range samples {
			locks = append(locks, timed(b, plain.Lock))
			require.NoError(b, plain.Unlock(b.Context()))
			before := requests()
			require.NoError(b, counted.Lock(b.Context()))
			turns += requests() - before
			require.NoError(b, counted.Unlock(b.Context()))
		}
	}
	b.ReportMetric(float64(turns)/float64(len(locks)), "requests/lock")
	b.ReportMetric(Millis(Quantile(locks, 50)), "ms/lock-p50")

	require.NoError(b, counted.Lock(b.Context()))
	proxy.Set(faults.StallBefore, false) // its host has no power any more
	counted.Crash()
	ctx, cancel := context.WithTimeout(b.Context(), 5*ttl)
	defer cancel()
	start := time.Now()
	if err := plain.Lock(ctx); err != nil {
		b.ReportMetric(-1, "ttl/take-over") // not within five
		return
	}
	b.ReportMetric(float64(time.Since(start))/float64(ttl), "ttl/take-over")
	require.NoError(b, plain.Unlock(b.Context()))
}

// Quantile is by the nearest rank: a time that was measured.
func Quantile(d []time.Duration, percent int) time.Duration {
	d = slices.Clone(d)
	slices.Sort(d)
	return d[max(0, (len(d)*percent+99)/100-1)]
}

// Millis are milliseconds, as they are reported.
func Millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
