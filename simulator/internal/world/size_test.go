//go:build unix

package world

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
