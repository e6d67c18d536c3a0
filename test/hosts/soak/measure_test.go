//go:build linux

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
)

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
	stands.stands([]stretch{{Host: "n1", Trouble: stopped, From: at(6.5), To: at(6.9)}, {Host: "n2", Trouble: noStore, From: at(0)}})
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
	a, b := parseProcessors("cpu  100 0 50 800 50 0 0 0 7 7"), parseProcessors("cpu  150 0 100 840 60 0 0 50 9 9")
	require.Equal(t, processors{idle: 850, total: 1000}, a)
	require.InDelta(t, 0.75, a.until(b), 1e-9)
	require.Zero(t, a.until(a))
	require.Zero(t, parseProcessors("").until(parseProcessors("junk")))
}
