package clustertest

import (
	"fmt"
	"slices"
	"time"
)

// Times are durations that were measured, in any order.
type Times []time.Duration

// At is the time that a share of them, of 0 to 1, does not exceed. Without any it is zero.
func (x Times) At(share float64) time.Duration {
	if len(x) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(x))
	return sorted[min(int(share*float64(len(x))), len(x)-1)].Round(100 * time.Microsecond)
}

func (x Times) String() string {
	return fmt.Sprintf("%d: p50 %v, p99 %v, max %v", len(x), x.At(0.5), x.At(0.99), x.At(1))
}
