//go:build linux

package main

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
)

func TestDistribution_NearestRank(t *testing.T) {
	require.Equal(t, figures{}, distribution(nil))
	require.Equal(t, figures{1, 3, 3, 3}, distribution([]float64{3}))
	var hundred []float64
	for i := range 100 {
		hundred = append(hundred, float64(100-i))
	}
	require.Equal(t, figures{100, 50, 99, 100}, distribution(hundred))
}

// played is a round with one loser.
func played(round int, s shape, active float64, faults ...fault) result {
	return result{
		Plan: plan{Round: round, Mode: moduleMode, Shape: s, Sides: [][]string{{"n1", "n2", "n3"}, {"n4", "n5"}},
			Faults: faults},
		Text: string(s), Outcome: oneSide, Up: []string{"n1", "n2", "n3"}, Verdicts: []uint64{uint64(round)},
		Downs:  map[string]string{"n4#x": "lost"},
		Active: []activity{{Member: "n4", Class: reaches, Seconds: active}}, Resolution: 5, Nobody: 4, Rejoin: 7,
		Took: 20, Bound: 10, Busy: 0.5,
	}
}

func failedRound(round int) result {
	r := played(round, bridge, 30)
	r.Outcome, r.Error = "", "two sides are up\nand more"
	return r
}

func sum(results ...result) summary {
	o := options{seed: 9, parallel: 2}
	return summarize(results, len(results), time.Minute, []string{"sbr 1", "serf 2"}, o)
}

func TestSummarize_CountsByShapeAndFault(t *testing.T) {
	slow := played(1, lone, 0.2, fault{Kind: storeSide, Hosts: []string{"n4"}})
	slow.Active = append(slow.Active, activity{Class: cutOff, Seconds: 6})
	s := sum(played(2, halves, 0.1), slow, failedRound(3))
	require.Equal(t, map[int]string{3: "two sides are up\nand more"}, s.Problems)
	require.Equal(t, figures{2, 0.1, 0.2, 0.2}, s.Classes[reaches], "a failed round gives no times")
	require.Equal(t, figures{1, 6, 6, 6}, s.Classes[cutOff])
	require.Equal(t, figures{1, 6, 6, 6}, s.Bounded)
	require.Equal(t, 3, s.All.Rounds)
	require.Equal(t, 1, s.All.Failed)
	rounds := make(map[string]int)
	for _, x := range append(s.Shapes, s.Faults...) {
		rounds[x.Fault] = x.Rounds
	}
	require.Equal(t, 1, rounds["halves"])
	require.Equal(t, 1, rounds["lone"])
	require.Equal(t, 1, rounds["bridge"])
	require.Equal(t, 1, rounds[string(storeSide)])
	require.Equal(t, 2, rounds[noFault])
	require.Equal(t, 0.5, s.Busy)
}

func TestFailed(t *testing.T) {
	good := sum(played(1, halves, 0.1))
	require.False(t, good.Failed())
	bad := sum(played(1, halves, 0.1), failedRound(2))
	require.True(t, bad.Failed())
	slow := sum(played(1, halves, 1.1))
	require.True(t, slow.Failed())
	few := sum(played(1, halves, 0.1))
	few.Planned = 2
	require.True(t, few.Failed())
}

func TestWrite_SaysWhatWasReached(t *testing.T) {
	s := sum(played(1, halves, 0.1), failedRound(2))
	s.Planned = 5
	requireLines(t, s.write,
		"2 rounds of seed 9 in 1m0s, 2 at a time: 1 failed; 5 were planned", "FAILED: round 2: two sides are up",
		"halves 1 1 0 0 0 100 ms / 100 ms / 100 ms 5.0 s / 5.0 s / 5.0 s 4.0 s / 4.0 s / 4.0 s",
		"reaches the store 1 100 ms 100 ms 100 ms p99 at most 1.0 s")
}

// requireLines asks for lines of a summary, whose columns may be as wide as they like.
func requireLines(t *testing.T, write func(io.Writer) error, lines ...string) {
	t.Helper()
	var text strings.Builder
	require.NoError(t, write(&text))
	said := regexp.MustCompile(" +").ReplaceAllString(text.String(), " ")
	for _, want := range lines {
		require.Contains(t, said, want)
	}
}

func TestProgress_NamesTheWayToRepeatAFailure(t *testing.T) {
	var b strings.Builder
	r := failedRound(17)
	r.Logs = "/logs/here"
	writeProgress(&b, &r, 1, 2, &options{seed: 9})
	require.Contains(t, b.String(), "FAILED")
	require.Contains(t, b.String(), "two sides are up\n        and more\n")
	require.Contains(t, b.String(), "go run -C test ./hosts/soak --seed 9 --round 17\n")
	require.Contains(t, b.String(), "/logs/here")
}

func TestOptions(t *testing.T) {
	o, err := parseOptions([]string{"--round", "5,3,5", "--seed", "7"}, new(bytes.Buffer))
	require.NoError(t, err)
	require.Equal(t, []int{3, 5}, o.numbers())
	o, err = parseOptions([]string{"--rounds", "3"}, new(bytes.Buffer))
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 3}, o.numbers())
	for _, bad := range [][]string{
		{"x"}, {"--rounds", "0"}, {"--parallel", "0"}, {"--round", "0"}, {"--round", "1,x"},
	} {
		_, err := parseOptions(bad, new(bytes.Buffer))
		require.Error(t, err, bad)
	}
}

func TestTake_PrefersTheModeOfTheStage(t *testing.T) {
	s := &soak{todo: []plan{{Round: 1, Mode: ownMode}, {Round: 2, Mode: moduleMode}, {Round: 3, Mode: ownMode}}}
	var got []int
	for _, m := range []mode{moduleMode, moduleMode, ownMode} {
		p, ok := s.take(stageKind{mode: m})
		require.True(t, ok)
		got = append(got, p.Round)
	}
	require.Equal(t, []int{2, 1, 3}, got)
	_, ok := s.take(stageKind{mode: ownMode})
	require.False(t, ok)
}

func TestTasks_AllErrors(t *testing.T) {
	a, b := errors.New("a"), errors.New("b")
	var x tasks
	x.start(func() error { return a })
	x.start(func() error { return nil })
	x.start(func() error { return b })
	err := x.wait()
	require.ErrorIs(t, err, a)
	require.ErrorIs(t, err, b)
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// at is a time of the day in seconds after noon.
func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

func TestClassify(t *testing.T) {
	for _, tc := range []struct {
		name      string
		stretches []stretch
		class     class
		seconds   float64
	}{
		{"nothing is wrong", nil, reaches, 4},
		{"with somebody else", []stretch{{Host: "n2", Trouble: noStore, From: at(0)}}, reaches, 4},
		{"the store was back before the verdict", []stretch{{Host: "n1", Trouble: noStore, From: at(0), To: at(5)}}, reaches, 4},
		{"the store was gone only later", []stretch{{Host: "n1", Trouble: noStore, From: at(11)}}, reaches, 4},
		{"no store", []stretch{{Host: "n1", Trouble: noStore, From: at(0)}}, cutOff, 4},
		{"no store for a while", []stretch{{Host: "n1", Trouble: noStore, From: at(7), To: at(8)}}, cutOff, 4},
		{"packets are lost", []stretch{{Host: "n1", Trouble: noStore, From: at(0)}, {Host: "n1", Trouble: lossy, From: at(0)}}, lossyClass, 4},
		{"it stood still until just before", []stretch{{Host: "n1", Trouble: noStore, From: at(0)}, {Host: "n1", Trouble: stopped, From: at(1), To: at(9)}}, stoodStill, 1},
		{"it was stopped and went down before it stood", []stretch{{Host: "n1", Trouble: stopped, From: at(9.5), To: at(11)}}, stoodStill, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			// The verdict was written at 6, the hook ran at 10.
			a := cluster.Active{Down: cluster.Down{Member: "n1", At: at(10)}, Verdict: 3, For: 4 * time.Second}
			got := classify(a, tc.stretches)
			require.Equal(t, tc.class, got.Class)
			require.InDelta(t, tc.seconds, got.Seconds, 1e-9)
			require.Equal(t, uint64(3), got.Verdict)
		})
	}
}

func hook(event string, seconds float64) cluster.Hook {
	return cluster.Hook{Event: event, At: at(seconds), Incarnation: "x"}
}

// Five work at the cut; all are suspended from 2 on, four go on or down.
func cutTimeline() timeline {
	t := timeline{cut: at(0)}
	for i, name := range hosts[:3] {
		t.hooks(name, "x", []cluster.Hook{hook("suspend", 1), hook("resume", 6+float64(i)), hook("suspend", -3)})
	}
	t.hooks("n4", "x", []cluster.Hook{hook("suspend", 2), hook("down", 9)})
	t.hooks("n5", "x", []cluster.Hook{hook("suspend", 2), hook("down", 7)})
	return t
}

func nobodySkipped(string) bool { return false }

func TestTimeline_Resolved(t *testing.T) {
	x := cutTimeline()
	require.Equal(t, 9*time.Second, x.resolved(at(0), nobodySkipped))
	require.Equal(t, 5*time.Second, x.resolved(at(4), nobodySkipped), "from the last cut")
	require.Equal(t, 8*time.Second, x.resolved(at(0), func(h string) bool { return h == "n4" }))
	require.Zero(t, (&timeline{cut: at(0)}).resolved(at(0), nobodySkipped), "nobody stopped working")
}

func TestTimeline_Nobody(t *testing.T) {
	x := cutTimeline()
	require.Equal(t, 4*time.Second, x.nobody(9*time.Second), "from the last suspend to the first resume")
	require.Equal(t, time.Second, x.nobody(3*time.Second), "up to the end")

	stands := cutTimeline()
	stands.stands([]stretch{{Host: "n1", Trouble: stopped, From: at(6.5), To: at(6.9)},
		{Host: "n2", Trouble: noStore, From: at(0)}})
	require.Equal(t, 4400*time.Millisecond, stands.nobody(9*time.Second), "the only one stands still")

	killed := cutTimeline()
	killed.add(at(1), "n1", false, func(w *worker) { w.gone = true })
	require.Equal(t, 5*time.Second, killed.nobody(9*time.Second), "the first to resume is dead")
	require.Zero(t, (&timeline{cut: at(0)}).nobody(time.Minute), "everybody works")
}

func TestTimeline_OtherIncarnationsDoNotCount(t *testing.T) {
	x := timeline{cut: at(0)}
	x.hooks("n1", "y", []cluster.Hook{hook("suspend", 1), hook("down", 2)})
	require.Empty(t, x.changes)
}

func TestProcessors(t *testing.T) {
	a, b := parseProcessors("cpu  100 0 50 800 50 0 0 0 7 7"),
		parseProcessors("cpu  150 0 100 840 60 0 0 50 9 9")
	require.Equal(t, processors{idle: 850, total: 1000}, a)
	require.InDelta(t, 0.75, a.until(b), 1e-9)
	require.Zero(t, a.until(a))
	require.Zero(t, parseProcessors("").until(parseProcessors("junk")))
}
