//go:build unix

package world

import (
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr/reachability"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// Times are those of the processor, so that they mean the same on a machine that is busy with something else;
// where it is not, they are those of the wall.

// spent is the processor time that this program has used.
func spent() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkSize says what a partition costs at each size, in time, events and memory.
func BenchmarkSize(b *testing.B) {
	for _, nodes := range []int{5, 20, 100, 300, 1000} {
		b.Run(strconv.Itoa(nodes), func(b *testing.B) {
			var cpu time.Duration
			var peak uint64
			for seed := uint64(1); b.Loop(); seed++ {
				before := spent()
				o := large(seed, nodes)
				o.Strategy = strategies.DefaultSettings().LeaseMajority
				w, err := New(o)
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

// large is a cluster with own probes and the watch.
func large(seed uint64, nodes int) Options {
	o := DefaultOptions()
	o.Seed, o.Nodes, o.Times = seed, nodes, nil
	o.Strategy = strategies.LeaseMajority{AcquireLeaseDelayForMinority: 6 * time.Second}
	o.Probe = reachability.DefaultSettings()
	o.Resolver.Watched = true
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
