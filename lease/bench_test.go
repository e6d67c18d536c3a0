package lease_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

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
