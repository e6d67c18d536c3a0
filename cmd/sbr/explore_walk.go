package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/explore"
)

// walkAll makes the walks of all families on all cores. The results are in the order of the families; one that was not begun when ctx
// ended is empty.
func walkAll(ctx context.Context, families []explore.Family, show *walkProgress) []explore.FamilyResult {
	results := make([]explore.FamilyResult, len(families))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for ctx.Err() == nil {
				k := int(next.Add(1)) - 1
				if k >= len(families) {
					return
				}
				results[k] = walkFamily(ctx, families[k], show.watcher(k))
				show.done(k, &results[k])
			}
		})
	}
	wg.Wait()
	return results
}

// walkFamily makes the walks of one family. A panic in it is a violation that names the family, not the end of all the others.
func walkFamily(ctx context.Context, f explore.Family, progress func(explore.WalkCounts)) (r explore.FamilyResult) {
	defer func() {
		if p := recover(); p != nil {
			text := fmt.Sprintf("internal error: the walk %s panicked: %v", f.Form, p)
			r.Broken = []explore.Violation{{Promise: "F1", Cluster: f.Partition, Text: text}}
		}
	}()
	return f.Run(ctx, progress)
}

// walkProgress is one line on a terminal that says how far exploring is.
type walkProgress struct {
	to     io.Writer
	budget time.Duration
	begun  time.Time

	mu            sync.Mutex
	last          time.Time
	states        []int // of each family
	total         uint64
	broken, ended int
}

// newWalkProgress shows nothing where nobody looks. A budget of zero is none.
func newWalkProgress(to io.Writer, families int, budget time.Duration) *walkProgress {
	if !isTerminal(to) {
		to = nil
	}
	now := time.Now()
	return &walkProgress{to: to, budget: budget, begun: now, last: now, states: make([]int, families)}
}

// watcher follows one family. Nil where nothing is shown.
func (p *walkProgress) watcher(family int) func(explore.WalkCounts) {
	if p.to == nil {
		return nil
	}
	return func(c explore.WalkCounts) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.count(family, c.States)
	}
}

func (p *walkProgress) done(family int, r *explore.FamilyResult) {
	if p.to == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended++
	if len(r.Broken) > 0 {
		p.broken++
	}
	p.count(family, r.States)
}

func (p *walkProgress) count(family, states int) {
	const every = 200 * time.Millisecond
	p.total += uint64(states - p.states[family])
	p.states[family] = states
	if now := time.Now(); now.Sub(p.last) >= every {
		p.last = now
		fmt.Fprint(p.to, "\r\x1b[K"+p.line(now.Sub(p.begun)))
	}
}

// line is "12 of 110 forms, 3,400,000 states, 400,000/s, 0 broken, at most 3m0s left".
func (p *walkProgress) line(took time.Duration) string {
	text := fmt.Sprintf("%d of %d forms, %s states, %s/s, %d broken",
		p.ended, len(p.states), thousands(p.total), thousands(perSecond(p.total, took)), p.broken)
	if p.budget > 0 {
		text += fmt.Sprintf(", at most %v left", max(p.budget-took, 0).Round(time.Second))
	}
	return text
}

func (p *walkProgress) end() {
	if p.to != nil {
		fmt.Fprint(p.to, "\r\x1b[K")
	}
}
