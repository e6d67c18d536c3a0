package hosts_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/ledger"
	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
)

const (
	// backup is the singleton of these tests.
	backup = "backup"
	// stopTimeout is how long its program may take to end.
	stopTimeout = 2 * time.Second
	// movesWithin bounds how long it takes to run again after a fault, on a busy machine.
	movesWithin = 90 * time.Second
	// promptly bounds a planned hand-over on a busy machine; the goal, on any other machine, is 200 ms.
	promptly = 2 * time.Second
)

// ledgerPrograms is the folder with the ledger and what writes to it.
var ledgerPrograms = sync.OnceValues(func() (string, error) {
	dir, err := built()
	if err != nil {
		return "", err
	}
	return dir, cluster.BuildLoad(context.Background(), dir)
})

// recorded is a rig with something that writes to a ledger.
type recorded struct {
	*rig
	ledger    *cluster.Ledger
	resources []string // what is written to
}

// newRecorded starts a cluster, once there is a ledger: at is told its URL.
func newRecorded(t *testing.T, m mode, o cluster.Options, dir string,
	at func(*cluster.Options, string)) *recorded {
	t.Helper()
	o.Settings.Lease = cluster.Brief().Lease
	r := &recorded{}
	r.rig = newRigWith(t, m, o, func(rig *rig, o *cluster.Options) {
		var err error
		r.ledger, err = cluster.StartLedger(t.Context(), rig.lab, filepath.Join(dir, "serve"))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, r.ledger.Close()) })
		at(o, r.ledger.URL())
	})
	return r
}

// mark is the time of the ledger at something that happens now.
func (r *recorded) mark(what string) time.Duration {
	r.t.Helper()
	at, err := r.ledger.Mark(r.t.Context(), what)
	require.NoError(r.t, err)
	return at
}

// report judges what was written: of no resource an older token after a newer one.
func (r *recorded) report() ledger.Report {
	r.t.Helper()
	var lines []ledger.Line
	for _, resource := range r.resources {
		own, err := r.ledger.Lines(resource)
		require.NoError(r.t, err)
		lines = append(lines, own...)
	}
	said := ledger.Analyse(lines)
	var text strings.Builder
	require.NoError(r.t, said.WriteText(&text))
	r.t.Logf("the ledger:\n%s", &text)
	require.True(r.t, said.Clean(), "in order of tokens, and each token one run's")
	// A downed member has a while to end.
	require.Eventually(r.t, func() bool { return r.Verify() == nil }, endsWithin, time.Second, "%v", r.Verify())
	return said
}

// single is a rig with a program that runs in one place and writes to a ledger.
type single struct {
	*recorded
	guard cluster.Guard
}

// writer is the program; around is a command that it is the end of.
func writer(dir string, around ...string) func(string) []string {
	return func(host string) []string {
		return append(slices.Clone(around), filepath.Join(dir, "write"), "--member", host, "--resource", backup)
	}
}

// newSingle returns when the program runs. Its command is the writer, after around.
func newSingle(t *testing.T, m mode, g cluster.Guard, around ...string) *single {
	t.Helper()
	needsRoot(t)
	dir, err := ledgerPrograms()
	require.NoError(t, err)
	o := restarting(3)
	o.Singleton = &cluster.Singleton{Name: backup, Guard: g, Command: writer(dir, around...),
		StopTimeout: stopTimeout}
	s := &single{guard: g}
	s.recorded = newRecorded(t, m, o, dir,
		func(o *cluster.Options, url string) { o.Singleton.Env = []string{"LEDGER_URL=" + url} })
	s.resources = []string{backup}
	s.waitAttached()
	s.work(0, "")
	return s
}

// waitAttached returns when the program can run on every host.
func (s *single) waitAttached() {
	s.t.Helper()
	if s.guard != cluster.ByLease { // then no agent has to do with it
		require.NoError(s.t, s.WaitAttached(s.within(time.Minute)))
	}
}

// work waits for accepted work later than after.
func (s *single) work(after time.Duration, who string) ledger.Line {
	s.t.Helper()
	l, err := s.ledger.Work(s.within(movesWithin), backup, after, who)
	require.NoError(s.t, err)
	return l
}

// workElsewhere waits for accepted work of a run other than one.
func (s *single) workElsewhere(than ledger.Line) ledger.Line {
	s.t.Helper()
	l, err := s.ledger.Find(s.within(movesWithin), backup, than.At, func(l ledger.Line) bool {
		return l.Accepted && l.Kind == ledger.Work && l.Run != than.Run
	})
	require.NoError(s.t, err)
	return l
}

// now is work that is done now.
func (s *single) now() ledger.Line {
	s.t.Helper()
	return s.work(s.mark("now"), "")
}

// handOver ends `sbr run` on the host of the program in good order and returns for how long nobody worked.
func (s *single) handOver() (gap time.Duration) {
	s.t.Helper()
	s.waitAttached()
	before := s.now()
	_, err := s.Member(before.Member).Resign(s.within(time.Minute))
	require.NoError(s.t, err)
	next := s.workElsewhere(before)
	lines, err := s.ledger.Lines(backup)
	require.NoError(s.t, err)
	for _, c := range ledger.Analyse(lines).Changes {
		if c.At == next.At {
			return c.Gap
		}
	}
	s.t.Fatalf("the ledger has no change at %v", next.At)
	return 0
}

// A planned hand-over costs milliseconds, and a rolling update moves the program without running it twice.
func TestSingleton_PlannedHandOver(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		mode  mode
		guard cluster.Guard
	}{{besideModule, cluster.ByMembers}, {ownNode, cluster.ByBoth}, {ownNode, cluster.ByLease}} {
		t.Run(tc.mode.name+" "+string(tc.guard), func(t *testing.T) {
			t.Parallel()
			s := newSingle(t, tc.mode, tc.guard)
			var gaps []time.Duration
			for range 10 {
				gaps = append(gaps, s.handOver())
			}
			slices.Sort(gaps)
			t.Logf("without work at a planned hand-over: %v", gaps)
			require.Less(t, gaps[len(gaps)/2], promptly)
			require.Empty(t, s.report().Overlaps)
		})
	}
}

// All five hosts are restarted in good order, one after the other; the program moves without running twice.
func TestSingleton_RollingUpdate(t *testing.T) {
	t.Parallel()
	s := newSingle(t, besideModule, cluster.ByBoth)
	for _, name := range five {
		m := s.Member(name)
		m.Run.SetRestart(false)
		_, err := m.Resign(s.within(time.Minute))
		require.NoError(t, err)
		require.NoError(t, m.Leave(s.within(time.Minute)))
		s.Restore(name)
		s.waitWhole(rejoinWithin)
	}
	s.now()
	require.Empty(t, s.downed())
	require.Empty(t, s.report().Overlaps)
}

// waitDowned waits for the end of an agent that is downed.
func (s *single) waitDowned(host string) {
	s.t.Helper()
	exit, err := s.Member(host).SBR.WaitExit(s.within(resolveWithin), 1)
	require.NoError(s.t, err)
	require.Equal(s.t, downing.ExitDowned, exit.Code)
}

// stubborn does not end at SIGTERM, and neither does what it starts in a session of its own. What follows is
// run by it.
var stubborn = []string{"/bin/sh", "-c", `trap "" TERM; setsid /bin/sh -c "while :; do sleep 1; done" & "$@"; while :; do sleep 1; done`, "stubborn"}

// left are the processes of the program on a host.
func (s *single) left(host string) (names []string) {
	s.t.Helper()
	running, err := s.lab.Host(host).Processes(s.t.Context())
	require.NoError(s.t, err)
	for _, p := range running {
		if p.Program == "sleep" || p.Program == "write" {
			names = append(names, p.Program)
		}
	}
	return names
}

// The holder is on the losing side. Everything that its program has started is dead within the bound,
// although it does not want to end, and then the program runs on the other side.
func TestSingleton_CutOffWithAProgramThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		guard cluster.Guard
		store bool // the holder reaches the lease store
	}{{"told by the store", cluster.ByBoth, true}, {"told by nobody", cluster.ByMembers, false}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newSingle(t, besideModule, tc.guard, stubborn...)
			before := s.now()
			host := before.Member
			if !tc.store {
				require.NoError(t, s.lab.CutStore(host))
			}
			cut := s.mark("cut")
			require.NoError(t, s.lab.Partition([]string{host}, without(five, []string{host})))
			require.Eventually(t, func() bool { return len(s.left(host)) == 0 }, movesWithin, 20*time.Millisecond)
			dead := s.mark("dead")
			next := s.workElsewhere(before)
			t.Logf("dead %v after the cut; work elsewhere after %v", dead-cut, next.At-cut)
			require.NotEqual(t, host, next.Member)
			require.Less(t, dead, next.At, "nothing was left when it started elsewhere")
			s.waitDowned(host)
			require.Empty(t, s.report().Overlaps)
		})
	}
}

// The holder's host stands still until it is replaced. What it writes when it goes on is refused.
func TestSingleton_PausedHolderWritesLate(t *testing.T) {
	t.Parallel()
	for _, g := range []cluster.Guard{cluster.ByMembers, cluster.ByBoth} {
		t.Run(string(g), func(t *testing.T) {
			t.Parallel()
			s := newSingle(t, ownNode, g)
			before := s.now()
			host := before.Member
			s.Member(host).SetRestart(false)
			still, err := s.lab.Freeze(s.within(time.Minute), host)
			require.NoError(t, err)
			next := s.workElsewhere(before)
			t.Logf("work elsewhere %v after the last one", next.At-before.At)
			woken := s.mark("woken")
			// as it happens, this one is the first to be given the processor
			require.NoError(t, still.Continue("write"))
			late, err := s.ledger.Find(s.within(movesWithin), backup, woken,
				func(l ledger.Line) bool { return l.Run == before.Run })
			require.NoError(t, err)
			require.False(t, late.Accepted)
			require.NoError(t, still.Continue())
			require.Eventually(t, func() bool { return len(s.left(host)) == 0 }, stopTimeout+slack,
				20*time.Millisecond)
			s.waitDowned(host)
			require.NotZero(t, s.report().Refused)
		})
	}
}

// One of the processes on the holder's host is killed. The program runs again, there or elsewhere, and not
// before all of the old one has ended.
func TestSingleton_OneProcessIsKilled(t *testing.T) {
	t.Parallel()
	s := newSingle(t, besideDebian, cluster.ByMembers)
	for _, tc := range []struct {
		name string
		kill func(m *cluster.Member)
	}{
		{"sbr agent", func(m *cluster.Member) { m.SBR.Process().Kill() }},
		{"sbr run", func(m *cluster.Member) { m.Run.Process().Kill() }},
		{"the program", func(m *cluster.Member) {
			n, err := m.Host.Kill(t.Context(), "write")
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}},
	} {
		before := s.now()
		killed := s.mark(tc.name + " is killed")
		tc.kill(s.Member(before.Member))
		next := s.workElsewhere(before)
		t.Logf("%s is killed on %s: work on %s after %v", tc.name, before.Member, next.Member, next.At-killed)
		s.waitWhole(rejoinWithin)
	}
	require.Empty(t, s.downed())
	require.Empty(t, s.report().Overlaps)
}
