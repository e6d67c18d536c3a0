package faults

import (
	"context"
	"sync"
	"testing"
	"time"
)

// Pulse tells when the server was slow for all. What a cell shows then is not its fault's doing.
type Pulse struct {
	slow    time.Duration
	mu      sync.Mutex
	last    time.Time // the end of the last stall
	waiting time.Time // since when there is no answer; zero between two reads
}

// TakePulse calls read, which goes past all proxies, all the time until the test ends. A read that takes
// longer than slow is a stall.
func TakePulse(t *testing.T, slow time.Duration, read func(context.Context) error) *Pulse {
	p := &Pulse{slow: slow}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			p.beat(ctx, read)
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	return p
}

func (p *Pulse) beat(ctx context.Context, read func(context.Context) error) {
	began := time.Now()
	p.note(func() { p.waiting = began })
	err := read(ctx)
	p.note(func() {
		p.waiting = time.Time{}
		if err != nil || p.isStall(began) {
			p.last = time.Now()
		}
	})
}

func (p *Pulse) note(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *Pulse) isStall(began time.Time) bool { return time.Since(began) > p.slow }

// StalledSince reports whether there was a stall after begin.
func (p *Pulse) StalledSince(begin time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last.After(begin) || !p.waiting.IsZero() && p.isStall(p.waiting)
}
