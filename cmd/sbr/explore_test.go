package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator/explore"
)

// exploreQuestion is a small one.
func exploreQuestion() *exploreAll {
	o := &exploreAll{strategy: "lease-majority", unknown: new("down"), watch: new("off")}
	o.plan.Members, o.plan.Crashes = 3, 1
	return o
}

// Exploring that is interrupted says what is missing, and is not complete.
func TestExplore_SaysWhatIsMissing(t *testing.T) {
	o := exploreQuestion()
	families, err := o.families()
	require.NoError(t, err)
	whole := o.report(families, walkAll(t.Context(), families, nil))
	require.True(t, whole.Complete)
	require.Zero(t, whole.missing)
	require.NoError(t, whole.verdict(0))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	none := o.report(families, walkAll(ctx, families, nil))
	require.False(t, none.Complete)
	require.Equal(t, whole.Walks+whole.Covered, none.missing)
	require.ErrorContains(t, none.verdict(1e9), "the time of 1s was over before everything was tried")
	none.Interrupted = true
	require.ErrorContains(t, none.verdict(0), "interrupted before everything was tried")
}

// The cores do not matter: the same question has the same answer.
func TestExplore_IsDeterministic(t *testing.T) {
	o := exploreQuestion()
	families, err := o.families()
	require.NoError(t, err)
	require.Equal(t, o.report(families, walkAll(t.Context(), families, nil)), o.report(families, walkAll(t.Context(), families, nil)))
}

// A walk that panics is a violation of its family, not the end of the others.
func TestExplore_APanicIsAViolation(t *testing.T) {
	r := walkFamily(t.Context(), explore.Family{Form: "2>1", Partition: "n1 n2 | n3", Walks: []explore.Walk{{Sides: [][]int{{0}, {1}}}}})
	require.False(t, r.Complete)
	require.Len(t, r.Broken, 1)
	require.Contains(t, r.Broken[0].Text, "internal error: the walk 2>1 panicked: ")
}

// Of violations that say the same the shortest way is shown, and of many three.
func TestExplore_ShowsTheShortestWay(t *testing.T) {
	r := new(walkReport)
	for _, v := range []explore.Violation{
		{Promise: "S1", Text: "a", Steps: []string{"1", "2"}}, {Promise: "S1", Text: "a", Steps: []string{"1"}},
		{Promise: "S1", Text: "b"}, {Promise: "L1", Text: "a"}, {Promise: "L1", Text: "c"},
	} {
		r.violated(v)
	}
	require.Len(t, r.Violations, 3)
	require.Equal(t, []string{"1"}, r.Violations[0].Steps)
	require.ErrorContains(t, r.verdict(0), "a promise is broken")
}
