package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator/explore"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
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
	require.Equal(t, o.report(families, walkAll(t.Context(), families, nil)),
		o.report(families, walkAll(t.Context(), families, nil)))
}

// A walk that panics is a violation of its family, not the end of the others.
func TestExplore_APanicIsAViolation(t *testing.T) {
	r := walkFamily(t.Context(), explore.Family{Form: "2>1", Partition: "n1 n2 | n3",
		Walks: []explore.Walk{{Sides: [][]int{{0}, {1}}}}})
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

// same FILE FILE compares two results, but for the time they took.
func same(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: same file file")
	}
	var got [2]map[string]any
	for i, name := range args {
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(name)), &got[i]))
		delete(got[i], "elapsed")
	}
	a, err := json.Marshal(got[0])
	ts.Check(err)
	b, err := json.Marshal(got[1])
	ts.Check(err)
	if string(a) != string(b) {
		ts.Fatalf("%s is\n%s\n%s is\n%s", args[0], a, args[1], b)
	}
}

// Nothing is shown where nobody looks.
func TestProgress(t *testing.T) {
	var shown bytes.Buffer
	p := newProgress(&shown, "run", 3)
	p.done(true)
	p.end()
	require.Empty(t, shown.String())
}

// A failure that is found is written as two files, of which the smaller one fails in the same way when it is
// played.
func TestExploreRandom_WritesFailures(t *testing.T) {
	dir := t.TempDir()
	text := "steps: [{at: 5s, leave: n3}, {at: 10s, partition: [[n1, n2], [n4, n5]]}]\nrun-for: 20s\n"
	failures := func() []*explore.Failure {
		return []*explore.Failure{
			{Promise: "S1", Shape: "n… and n… are both up and cannot reach each other", Text: "S1 broken", Seed: 7, Runs: 1, Scenario: text},
			{Promise: "S1", Shape: "another", Text: "S1 broken", Seed: 7, Runs: 1, Scenario: text},
		}
	}
	o := &exploreRandom{out: dir}
	r := &explore.Report{Failures: failures()}
	require.NoError(t, o.shrink(t.Context(), r))
	require.Equal(t, "sbr simulate "+dir+"/S1-seed-7.yaml --seeds 7", r.Failures[0].Replay)
	require.Equal(t, "sbr simulate "+dir+"/S1-seed-7-2.yaml --seeds 7", r.Failures[1].Replay)
	for _, name := range []string{"S1-seed-7.yaml", "S1-seed-7-original.yaml", "S1-seed-7-2.yaml",
		"S1-seed-7-2-original.yaml"} {
		files, err := loadScenarios([]string{dir + "/" + name}, nil)
		require.NoError(t, err)
		require.Contains(t, scenario.Judge(files[0].Scenario, 7).Failures[0], "S1 broken")
	}
	small, err := os.ReadFile(dir + "/S1-seed-7.yaml")
	require.NoError(t, err)
	require.Equal(t, string(small), r.Failures[0].Scenario)
	require.Equal(t, 1, r.Failures[0].Steps)
	require.Equal(t, 2, r.Failures[0].Members)

	inline := &explore.Report{Failures: failures()}
	require.NoError(t, (&exploreRandom{}).shrink(t.Context(), inline))
	require.Equal(t, "sbr simulate - --seeds 7", inline.Failures[0].Replay, "it is not the scenario of its seed")
}

// An interrupted exploration prints what it has found so far, as a result that can be read, and ends with an
// exit status that says that it is not all.
func TestExploreRandom_Interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	o := &exploreRandom{seeds: seedRange{from: 1, to: 1000, endless: true}, output: formatJSON}
	err := o.run(ctx, streams{out: &out, err: new(bytes.Buffer)})
	require.ErrorContains(t, err, "interrupted after 0 runs")
	require.Equal(t, exitInternal, report(io.Discard, verb(func() error { return err })(nil, nil)))
	var r struct{ Interrupted, Complete bool }
	require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	require.True(t, r.Interrupted)
	require.False(t, r.Complete)
}

func TestExploreRandom_WriteErrorIsReported(t *testing.T) {
	for _, f := range []string{formatText, formatJSON, formatJUnit} {
		o := &exploreRandom{seeds: seedRange{from: 1, to: 3, endless: true}, output: f}
		require.ErrorIs(t, o.run(t.Context(), streams{out: broken{}, err: new(bytes.Buffer)}), errBroken, f)
	}
}

// JUnit is what servers take: valid, with sums that are right, and no two cases of one name.
func TestExploreRandom_JUnitIsWhatServersRead(t *testing.T) {
	nasty := "<&\"'> \x00\x1b ]]> \xff"
	r := &explore.Report{Version: "v1", Played: explore.Played{Runs: 7, Failed: 3}, Interrupted: true,
		Never: []string{nasty}, Failures: []*explore.Failure{
			{Promise: "S1", Shape: "a", Text: nasty, Seed: 3, Scenario: nasty}, {Promise: "S1", Shape: "b", Text: "b", Seed: 3},
		}}
	var out bytes.Buffer
	o := exploreRandom{require: true}
	require.NoError(t, o.junit(&out, r))
	cases, failures := validJUnit(t, out.Bytes())
	require.Equal(t, 4, cases)
	require.Equal(t, 4, failures, "two kinds, the transitions, and the runs that were interrupted")
	var all junitSuites
	require.NoError(t, xml.Unmarshal(out.Bytes(), &all))
	names := make(map[string]bool)
	for _, c := range all.Suites[0].Cases {
		require.False(t, names[c.Name], c.Name)
		names[c.Name] = true
	}
}
