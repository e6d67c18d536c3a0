package lab_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/hosts/lab"
	"github.com/serf-sbr/serf-sbr/test/process"
)

// tree counts, by ten a second, in a process that has left its parent's group.
var tree = process.Command{Name: "tree", Program: "/bin/sh",
	Args: []string{"-c", "setsid sh -c 'while :; do sleep 0.1; echo .; done' & wait"}}

func count(p *process.Process) int { return len(p.Log()) }

func programs(t *testing.T, h *lab.Host) (names []string) {
	t.Helper()
	running, err := h.Processes(t.Context())
	require.NoError(t, err)
	for _, r := range running {
		names = append(names, r.Program)
	}
	return names
}

// Everything on one host stands still, on the others nothing; then all of it goes on.
func TestFreeze_StopsWhatWasStartedByWhatWasStarted(t *testing.T) {
	l := newLab(t, "n1", "n2")
	here, err := l.Host("n1").Start(tree)
	require.NoError(t, err)
	there, err := l.Host("n2").Start(tree)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return count(here) > 0 && count(there) > 0 }, 10*time.Second,
		10*time.Millisecond)

	still, err := l.Freeze(within(t, 10*time.Second), "n1")
	require.NoError(t, err)
	require.True(t, here.Paused())
	before, elsewhere := count(here), count(there)
	require.Eventually(t, func() bool { return count(there) > elsewhere+6 }, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, before, count(here))
	require.NoError(t, l.Cut("n1", "n2"), "faults can be changed meanwhile")

	require.NoError(t, still.Continue("no such program"))
	require.True(t, here.Paused())
	require.NoError(t, still.Continue())
	require.Eventually(t, func() bool { return count(here) > before }, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, still.Continue(), "there is nobody left")
}

// A crash ends all that runs on one host; what is supervised starts again.
func TestCrash_EndsEverythingOnOneHost(t *testing.T) {
	l := newLab(t, "n1", "n2")
	s, err := l.Host("n1").Supervise(tree, 0)
	require.NoError(t, err)
	there, err := l.Host("n2").Start(tree)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return slices.Contains(programs(t, l.Host("n1")), "sleep") },
		10*time.Second, 10*time.Millisecond)
	s.SetRestart(false)
	require.NoError(t, l.Crash(t.Context(), "n1"))
	require.False(t, s.Process().Alive(), "its end is known")
	require.Empty(t, programs(t, l.Host("n1")))
	require.True(t, there.Alive())
	s.SetRestart(true)
	require.Eventually(t, func() bool { return len(programs(t, l.Host("n1"))) > 0 }, 10*time.Second,
		10*time.Millisecond)
}

func TestKill_EndsTheNamedPrograms(t *testing.T) {
	l := newLab(t, "n1")
	p, err := l.Host("n1").Start(process.Command{Name: "two", Program: "/bin/sh",
		Args: []string{"-c", "sleep 60 & sleep 60; echo woken; sleep 60"}})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(programs(t, l.Host("n1"))) == 3 }, 10*time.Second,
		10*time.Millisecond)
	n, err := l.Host("n1").Kill(t.Context(), "sleep")
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Eventually(t, func() bool { return strings.Contains(p.Log(), "woken") }, 10*time.Second,
		10*time.Millisecond)
	require.True(t, p.Alive())
}
