package leasetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Harness is what the suite needs of a backend. Only Open is required.
type Harness struct {
	// Open returns the connection of one party. All connections of one Harness reach the same record, absent
	// at first.
	Open func(t testing.TB, party string) lease.Store
	// Delete takes the record away behind the contract's back, as an operator would. Nil: these tests are
	// skipped.
	Delete func(t testing.TB)
	// Interrupt breaks all connections for a moment (a server that restarts). Nil: these tests are skipped.
	Interrupt func(t testing.TB)
	// Failover makes another server take over from the present one, as abruptly as it can happen, and returns
	// when requests are answered again. What was answered before must not be forgotten. Nil: that is not
	// tested.
	Failover func(t testing.TB)
	// Patience bounds the wait for one event. Zero: 30 s.
	Patience time.Duration
}

// Run runs the whole suite. newHarness is called once for each test.
func Run(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Helper()
	t.Run("store", func(t *testing.T) { runStore(t, newHarness) })
	t.Run("lease", func(t *testing.T) { RunLease(t, newHarness) })
}

// runStore runs the part that checks the Store contract.
func runStore(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Helper()
	runAll(t, newHarness, storeTests)
	runAll(t, newHarness, watchTests)
}

// RunLease runs the part that checks the lease algorithm over the backend, and the locks on top of it.
func RunLease(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Helper()
	runAll(t, newHarness, leaseTests)
	runAll(t, newHarness, timedTests)
	runAll(t, newHarness, historyTests)
	runAll(t, newHarness, lockTests)
}

const (
	// largeVerdict is how many members a verdict must be able to name.
	largeVerdict = 1000
	// contenders is how many parties want the same at once.
	contenders = 30
)

type namedTest struct {
	name string
	run  func(t *testing.T, h *bench)
}

func runAll(t *testing.T, newHarness func(t *testing.T) Harness, tests []namedTest) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := newHarness(t)
			require.NotNil(t, h.Open, "Harness.Open is required")
			if h.Patience == 0 {
				h.Patience = 30 * time.Second
			}
			test.run(t, &bench{Harness: h, t: t})
		})
	}
}

// bench is a Harness at work in one test.
type bench struct {
	Harness
	t *testing.T
}

func (b *bench) open(party string) lease.Store {
	b.t.Helper()
	s := b.Open(b.t, party)
	require.NotNil(b.t, s)
	return s
}

// read returns the present state.
func (b *bench) read(s lease.Store) lease.Snapshot {
	b.t.Helper()
	got, err := s.Read(b.t.Context())
	require.NoError(b.t, err)
	return got
}

// write writes, and insists that it works and that a read shows what was written.
func (b *bench) write(s lease.Store, r lease.Record, prev lease.Version) lease.Snapshot {
	b.t.Helper()
	version, err := s.Write(b.t.Context(), r, prev)
	require.NoError(b.t, err)
	require.NotEmpty(b.t, version)
	got := b.read(s)
	require.Equal(b.t, version, got.Version)
	b.same(r, got.Record)
	return got
}

// conflict writes, and insists that the answer is a conflict and nothing has changed.
func (b *bench) conflict(s lease.Store, r lease.Record, prev lease.Version) {
	b.t.Helper()
	before := b.read(s)
	_, err := s.Write(b.t.Context(), r, prev)
	require.ErrorIs(b.t, err, lease.ErrConflict)
	after := b.read(s)
	require.Equal(b.t, before.Version, after.Version)
	b.same(before.Record, after.Record)
}

// same compares records: nothing of one may be lost in storage, or a holder's heartbeat would look like two
// signs of life.
func (b *bench) same(want, got lease.Record) {
	b.t.Helper()
	require.True(b.t, want.Acquired.Equal(got.Acquired), "Acquired: %v, %v", want.Acquired, got.Acquired)
	require.True(b.t, want.Renewed.Equal(got.Renewed), "Renewed: %v, %v", want.Renewed, got.Renewed)
	want.Acquired, want.Renewed = got.Acquired, got.Renewed
	if want.Verdict != nil && got.Verdict != nil {
		want.Verdict, got.Verdict = tidied(want.Verdict), tidied(got.Verdict)
	}
	require.Equal(b.t, want, got)
}

// tidied is v in its normal form; empty and absent lists are the same.
func tidied(v *sbr.Verdict) *sbr.Verdict {
	v = v.Clone()
	v.Normalize()
	if len(v.Survivors) == 0 {
		v.Survivors = nil
	}
	if len(v.Down) == 0 {
		v.Down = nil
	}
	return v
}

// eventually waits for what a real backend takes its time for.
func (b *bench) eventually(cond func() bool, what string, args ...any) {
	b.t.Helper()
	require.Eventually(b.t, cond, b.Patience, time.Millisecond, fmt.Sprintf(what, args...))
}

// record is a full record.
func record(holder string, token uint64) lease.Record {
	at := time.Date(2026, 11, 21, 13, 35, 7, 123000000, time.UTC)
	return lease.Record{
		Holder: holder, Token: token, Nonce: fmt.Sprintf("nonce-%s-%d", holder, token), TTL: 90 * time.Second,
		Acquired: at.Add(time.Duration(token) * time.Second), Renewed: at.Add(time.Duration(token) * time.Minute),
		Verdict: &sbr.Verdict{
			Token: token, Survivors: []sbr.ID{"n1@1", "n2@1"}, Down: []sbr.ID{"n3@1"}, DecidedBy: "n1@1",
			Reason: `n3 is "cut off": <2> of 3 survive – größer, 多数`,
		},
	}
}

// members are n incarnation ids of a realistic length.
func members(n int) []sbr.ID {
	ids := make([]sbr.ID, n)
	for i := range ids {
		ids[i] = sbr.ID(fmt.Sprintf("payments-7d4b9c6f5d-%05d@%013d", i, 1700000000000+int64(i)*7919))
	}
	return ids
}
