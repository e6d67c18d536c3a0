package kubefake

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// What the tests of a store in Kubernetes have in common, over this API server or a real one.

// Record has all fields, and times that survive the microseconds of the API.
func Record(holder string, token uint64) lease.Record {
	began := time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)
	return lease.Record{
		Holder: holder, Token: token, Nonce: holder + "-" + strconv.FormatUint(token, 10),
		TTL:      1500 * time.Millisecond,
		Acquired: began, Renewed: began.Add(time.Second),
		Verdict: &sbr.Verdict{
			Token: token, Survivors: []sbr.ID{"a", "b"}, Down: []sbr.ID{"c"},
			DecidedBy: sbr.ID(holder), Reason: "majority",
		},
	}
}

// MustWrite writes, and insists that it works.
func MustWrite(t testing.TB, s lease.Store, r lease.Record, prev lease.Version) lease.Snapshot {
	t.Helper()
	version, err := s.Write(t.Context(), r, prev)
	require.NoError(t, err)
	return lease.Snapshot{Record: r, Version: version}
}

// RequireUnknown demands an error that leaves open whether something was written.
func RequireUnknown(t testing.TB, err error) {
	t.Helper()
	require.Error(t, err)
	require.NotErrorIs(t, err, lease.ErrConflict)
	require.NotErrorIs(t, err, lease.ErrRefused)
	require.NotErrorIs(t, err, lease.ErrTooLarge)
}

// Watching follows a store until the test ends, with quick retries, and returns what that brings. log may be
// nil.
func Watching(t testing.TB, s lease.Store, log *slog.Logger) <-chan lease.Snapshot {
	const soon = 20 * time.Millisecond
	hurried := lease.Pace{Retry: soon / 4, RetryMax: soon, Poll: soon, Beside: time.Hour}
	seen := make(chan lease.Snapshot, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- lease.Follow(ctx, s, hurried, log, func(now lease.Snapshot) { seen <- now }) }()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
	return seen
}

// Next waits for what a watch brings next, also for a watch that has lost its server.
func Next(t testing.TB, seen <-chan lease.Snapshot) lease.Snapshot {
	t.Helper()
	select {
	case snapshot := <-seen:
		return snapshot
	case <-time.After(30 * time.Second):
		require.FailNow(t, "the watch brought nothing")
		return lease.Snapshot{}
	}
}

// Nothing demands that a watch brings nothing for so long.
func Nothing(t testing.TB, seen <-chan lease.Snapshot, during time.Duration) {
	t.Helper()
	select {
	case snapshot := <-seen:
		require.FailNow(t, "unexpected", "%+v", snapshot)
	case <-time.After(during):
	}
}
