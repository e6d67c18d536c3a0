//go:build unix

package world

import (
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr/reachability"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// Times are those of the processor, so that they mean the same on a machine that is busy with something else; where it is not, they
// are those of the wall.

// spent is the processor time that this program has used.
func spent() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// five plays a partition of five members, three against two, from the start over the cut to its resolution.
func five(tb testing.TB, seed uint64) time.Duration {
	w, err := New(large(seed, 5))
	if err != nil {
		tb.Fatal(err)
	}
	w.At(10*time.Second, func() { w.Partition([]int{0, 1, 2}, []int{3, 4}) })
	w.Run(45 * time.Second)
	if !w.Settled() || len(w.Down()) != 2 {
		tb.Fatalf("seed %d: not resolved", seed)
	}
	return w.Now()
}

// BenchmarkFive says how many partitions of five members are resolved in a second, and how much faster than the wall virtual time passes.
func BenchmarkFive(b *testing.B) {
	b.ReportAllocs()
	var virtual time.Duration
	before, runs := spent(), 0
	for seed := uint64(1); b.Loop(); seed++ {
		virtual += five(b, seed)
		runs++
	}
	cpu := (spent() - before).Seconds()
	b.ReportMetric(float64(runs)/cpu, "runs/cpu-s")
	b.ReportMetric(virtual.Seconds()/cpu, "virtual-s/cpu-s")
	b.ReportMetric(virtual.Seconds()/b.Elapsed().Seconds(), "virtual-s/s")
}

// collect is how seldom memory is collected, as sbr simulate does.
const collect = 800

// BenchmarkCores plays the same runs on one core and on two, in turns, and says how many times as many are played on two.
func BenchmarkCores(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(collect))
	const batch = 2000
	var wall, cpu [3]time.Duration
	runs := 0
	for b.Loop() {
		for _, cores := range []int{1, 2} {
			at, used := b.Elapsed(), spent()
			batchOn(b, cores, batch)
			wall[cores] += b.Elapsed() - at
			cpu[cores] += spent() - used
		}
		runs += batch
	}
	b.ReportMetric(wall[1].Seconds()/wall[2].Seconds(), "x-on-2-cores")
	b.ReportMetric(2*cpu[1].Seconds()/cpu[2].Seconds(), "x-by-cpu")
	b.ReportMetric(float64(runs)/wall[2].Seconds(), "runs/s")
}

func batchOn(b *testing.B, cores, runs int) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	var next atomic.Uint64
	var wg sync.WaitGroup
	for range cores {
		wg.Go(func() {
			for seed := next.Add(1); seed <= uint64(runs); seed = next.Add(1) {
				five(b, seed)
			}
		})
	}
	wg.Wait()
}

// BenchmarkSize says what a partition costs at each size, in time, events and memory.
func BenchmarkSize(b *testing.B) {
	for _, nodes := range []int{5, 20, 100, 300, 1000} {
		b.Run(strconv.Itoa(nodes), func(b *testing.B) {
			var cpu time.Duration
			var peak uint64
			for seed := uint64(1); b.Loop(); seed++ {
				before := spent()
				w, err := New(large(seed, nodes))
				require.NoError(b, err)
				groups := sixToFour(nodes)
				w.At(10*time.Second, func() { w.Partition(groups...) })
				w.Run(2 * time.Minute)
				cpu += spent() - before
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak = max(peak, m.Sys)
				b.ReportMetric(float64(w.seq), "events")
				b.ReportMetric(float64(len(w.Down())), "down")
			}
			b.ReportMetric(cpu.Seconds()/float64(b.N), "cpu-s/run")
			b.ReportMetric(float64(b.N)/cpu.Seconds(), "runs/cpu-s")
			b.ReportMetric(float64(peak)/1e6, "MB")
		})
	}
}

// large is a cluster as it is played with default settings: with own probes and the watch.
func large(seed uint64, nodes int) Options {
	o := DefaultOptions()
	o.Seed, o.Nodes, o.Times = seed, nodes, nil
	o.Strategy = strategies.LeaseMajority{AcquireLeaseDelayForMinority: 6 * time.Second}
	o.Probe = reachability.DefaultSettings()
	o.Resolver.Watched, o.Refuse, o.KeepNames = true, true, true
	return o
}

// sixToFour cuts six tenths of the nodes off from the others.
func sixToFour(nodes int) [][]int {
	all := make([]int, nodes)
	for i := range all {
		all[i] = i
	}
	return [][]int{all[:nodes*6/10], all[nodes*6/10:]}
}
