// Package cores spreads independent work over all cores.
package cores

import (
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
)

// All calls f with 0 to n-1, from several goroutines.
func All(n int, f func(i int)) {
	var next atomic.Int64
	var work sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		work.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				f(int(i))
			}
		})
	}
	work.Wait()
}

// InOrder yields f(0) to f(n-1) in this order. The values are computed on all cores, not far ahead of the
// caller; the computation ends when the caller stops.
func InOrder[T any](n uint64, f func(i uint64) T) iter.Seq[T] {
	const ahead = 64 // results for each core that may wait for their turn
	return func(yield func(T) bool) {
		cores := runtime.GOMAXPROCS(0)
		waiting, busy, stop := make(chan chan T, ahead*cores), make(chan struct{}, cores), make(chan struct{})
		var work sync.WaitGroup
		work.Go(func() {
			defer close(waiting)
			for i := range n {
				to := make(chan T, 1)
				select {
				case waiting <- to:
				case <-stop:
					return
				}
				busy <- struct{}{}
				work.Go(func() {
					to <- f(i)
					<-busy
				})
			}
		})
		for to := range waiting {
			if !yield(<-to) {
				break
			}
		}
		close(stop)
		work.Wait()
	}
}
