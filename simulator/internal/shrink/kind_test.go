package shrink

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

func TestKind_WhatTwoFailuresHaveInCommon(t *testing.T) {
	for _, tc := range []struct {
		line    string
		cause   cause
		promise bool
		at      time.Duration
	}{
		{"S1 broken at 20.000s: n1#1 and n4#1 are both up", "S1", true, 20001 * time.Millisecond},
		{"S1 broken in 3 more ways", "S1", true, 0},
		{"chain broken at 1.5s: verdict 2 broken at 3", "chain", true, 1501 * time.Millisecond},
		{"survivors: expected [n1], found []", "survivors: expected [n1], found []", false, 0},
		{"resolved-within: expected 1s, it took 2.5s", "resolved-within: expected 1s", false, 0},
		{"decisions: a broken at b: expected x, found y", "decisions: a broken at b: expected x, found y", false, 0},
		{"internal error: the run panicked: boom", scenario.Panicked, true, 0},
	} {
		c, promise := kind(tc.line)
		require.Equal(t, tc.cause, c)
		require.Equal(t, tc.promise, promise, tc.line)
		at, ok := brokenAt(tc.line)
		require.Equal(t, tc.at != 0, ok, tc.line)
		if ok {
			require.Equal(t, tc.at, at)
		}
	}
}
