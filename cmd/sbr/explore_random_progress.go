package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/explore"
)

// exploreProgress is one line on a terminal that says how far exploring is.
type exploreProgress struct {
	to     io.Writer
	total  uint64 // seeds
	budget time.Duration
	begun  time.Time

	mu           sync.Mutex
	last         time.Time
	runs, failed uint64
	taken        map[string]struct{} // transitions
}

// newExploreProgress shows nothing where nobody looks. Total is how many seeds there are, budget how much time; zero for any.
func newExploreProgress(to io.Writer, total uint64, budget time.Duration) *exploreProgress {
	if !isTerminal(to) {
		to = nil
	}
	now := time.Now()
	return &exploreProgress{to: to, total: total, budget: budget, begun: now, last: now, taken: make(map[string]struct{})}
}

// watcher follows one worker. Nil where nothing is shown.
func (p *exploreProgress) watcher() func(*explore.Findings) {
	if p.to == nil {
		return nil
	}
	const runs = 16 // between two looks
	var seen struct {
		runs, failed uint64
		taken        int
	}
	return func(f *explore.Findings) {
		if f.Runs-seen.runs < runs {
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.runs += f.Runs - seen.runs
		p.failed += f.Failed - seen.failed
		if f.Coverage.Len() != seen.taken {
			for name := range f.Coverage.Counts() {
				p.taken[name] = struct{}{}
			}
		}
		seen.runs, seen.failed, seen.taken = f.Runs, f.Failed, f.Coverage.Len()
		p.show(time.Now())
	}
}

func (p *exploreProgress) show(now time.Time) {
	const every = 200 * time.Millisecond
	if now.Sub(p.last) < every {
		return
	}
	p.last = now
	fmt.Fprint(p.to, "\r\x1b[K"+p.line(now.Sub(p.begun)))
}

// line is "[####......]  40%  12,000 runs, 5,000/s, 0 failed, 231 transitions, 3s left".
func (p *exploreProgress) line(took time.Duration) string {
	const width = 20
	share := float64(p.runs) / float64(p.total)
	if p.budget > 0 {
		share = max(share, float64(took)/float64(p.budget))
	}
	share = min(share, 1)
	full := int(share * width)
	left := "?"
	if share > 0 {
		left = time.Duration(float64(took) * (1/share - 1)).Round(time.Second).String()
	}
	return fmt.Sprintf("[%s%s] %3.0f%%  %s runs, %s/s, %d failed, %d transitions, %s left",
		strings.Repeat("#", full), strings.Repeat(".", width-full), 100*share, thousands(p.runs),
		thousands(perSecond(p.runs, took)), p.failed, len(p.taken), left)
}

func (p *exploreProgress) end() {
	if p.to != nil {
		fmt.Fprint(p.to, "\r\x1b[K")
	}
}

func perSecond(n uint64, took time.Duration) uint64 {
	if took <= 0 {
		return 0
	}
	return uint64(float64(n) / took.Seconds())
}

// thousands writes 1234567 as 1,234,567.
func thousands(n uint64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
