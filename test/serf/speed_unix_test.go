//go:build unix

package serf_test

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// modelSplits is how many runs of the model stand beside each one of real Serf.
const modelSplits = 2000

// BenchmarkModelAgainstSerf measures the same file from the cut to the resolution, in one run: real Serf in
// virtual time, and the model, whose runs up to the cut are measured as well and taken off. How much virtual
// time a second holds counts whole runs of the model. By the clock on the wall Serf has all cores and the
// model one; beside other programs the time of the processor (cpu) is the better measure.
func BenchmarkModelAgainstSerf(b *testing.B) {
	file := filepath.Join("..", "..", "simulator", "scenarios", "three-two.yaml")
	data, err := os.ReadFile(file)
	require.NoError(b, err)
	s, err := scenario.Parse(file, data)
	require.NoError(b, err)
	var bySerf, byModel, toCut spent
	var virtual time.Duration
	runs := 0
	for b.Loop() {
		runs++
		bySerf = bySerf.and(timeOfSerf(b, s, uint64(runs)))
		whole, before, passed := timeOfModel(b, s, uint64(runs))
		byModel, toCut, virtual = byModel.and(whole), toCut.and(before), virtual+passed
	}
	fromCut := byModel.since(toCut)
	each := func(d time.Duration, runs int) float64 { return d.Seconds() / float64(runs) }
	b.ReportMetric(1e3*each(bySerf.wall, runs), "ms/serf")
	b.ReportMetric(1e6*each(fromCut.wall, runs*modelSplits), "µs/model")
	b.ReportMetric(1e6*each(byModel.cpu, runs*modelSplits), "cpu-µs/model-run")
	b.ReportMetric(modelSplits*bySerf.wall.Seconds()/fromCut.wall.Seconds(), "times-faster")
	b.ReportMetric(modelSplits*bySerf.cpu.Seconds()/fromCut.cpu.Seconds(), "times-faster-cpu")
	b.ReportMetric(virtual.Seconds()/byModel.wall.Seconds(), "virtual-s/s")
	b.ReportMetric(virtual.Seconds()/byModel.cpu.Seconds(), "virtual-s/cpu-s")
	b.ReportMetric(0, "ns/op")
}

// spent is time by the clock on the wall and by the processor's, of the whole process. Both are asked of the
// system: package time knows only virtual time in a bubble.
type spent struct{ wall, cpu time.Duration }

func spentByNow(tb testing.TB) spent {
	var now syscall.Timeval
	var use syscall.Rusage
	require.NoError(tb, syscall.Gettimeofday(&now))
	require.NoError(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &use))
	return spent{time.Duration(now.Nano()), time.Duration(use.Utime.Nano() + use.Stime.Nano())}
}

func (s spent) and(x spent) spent   { return spent{s.wall + x.wall, s.cpu + x.cpu} }
func (s spent) since(x spent) spent { return spent{s.wall - x.wall, s.cpu - x.cpu} }

// timeOfSerf plays the file over real Serf. A bubble needs a test, so one is run here.
func timeOfSerf(b *testing.B, s *scenario.Scenario, seed uint64) (took spent) {
	c := *s
	at, _ := s.Disturbed()
	c.RunFor = at + time.Minute
	test := func(t *testing.T) {
		var cut spent
		o := play(t, &c, seed, func(p *player) {
			p.after(at, func() error {
				cut = spentByNow(t)
				return nil
			})
			p.whenResolved(*s.Expect.Survivors, func() { took = spentByNow(t).since(cut) })
		})
		require.NoError(t, o.err)
		require.NotZero(t, took.wall, "not resolved: %v", &o)
		require.Empty(t, o.unmet(s, true))
	}
	require.True(b, testing.RunTests(func(string, string) (bool, error) { return true, nil },
		[]testing.InternalTest{{Name: b.Name(), F: test}}))
	return took
}

// whenResolved calls f once when the members that are up are these and everything is settled.
func (p *player) whenResolved(survivors []string, f func()) {
	var up []*process
	var names []string
	for _, n := range p.nodes {
		if n.proc != nil && n.proc.up() {
			up, names = append(up, n.proc), append(names, n.Name)
		}
	}
	if slices.Equal(names, survivors) && p.settled(up) {
		f()
		return
	}
	p.after(50*time.Millisecond, func() error {
		p.whenResolved(survivors, f)
		return nil
	})
}

// timeOfModel plays the file many times in the model, up to a moment at which it is resolved, and as often up
// to the cut. It returns what both took, and how much virtual time passed in the whole runs.
func timeOfModel(b *testing.B, s *scenario.Scenario, first uint64) (whole, toCut spent, virtual time.Duration) {
	c := *s
	after, err := time.ParseDuration(scenario.Judge(s, first).ResolvedAfter)
	require.NoError(b, err)
	at, _ := s.Disturbed()
	c.RunFor = at + after + 2*time.Second // chance makes some runs a little longer
	ready, err := scenario.Prepare(&c)
	require.NoError(b, err)
	began := spentByNow(b)
	for seed := range uint64(modelSplits) {
		if r := ready.Judge(first*modelSplits + seed); len(r.Survivors) != len(*s.Expect.Survivors) {
			b.Fatalf("seed %d is not resolved: %v", first*modelSplits+seed, r.Failures)
		}
		virtual += c.RunFor
	}
	whole = spentByNow(b).since(began)
	before := c // the other one is played no more, but must not change
	before.Steps, before.Expect, before.RunFor = nil, scenario.Expect{}, at
	ready, err = scenario.Prepare(&before)
	require.NoError(b, err)
	began = spentByNow(b)
	for seed := range uint64(modelSplits) {
		if r := ready.Judge(first*modelSplits + seed); !r.Passed {
			b.Fatal(r.Failures)
		}
	}
	return whole, spentByNow(b).since(began), virtual
}
