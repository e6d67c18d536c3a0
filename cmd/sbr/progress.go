package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress is one line on a terminal that says how far a long run is. Elsewhere it shows nothing. Several goroutines may use it.
type progress struct {
	to   io.Writer // nil where nobody looks
	line func(took time.Duration) string

	mu          sync.Mutex
	begun, last time.Time
}

func newProgress(to io.Writer, line func(took time.Duration) string) *progress {
	if !isTerminal(to) {
		to = nil
	}
	now := time.Now()
	return &progress{to: to, line: line, begun: now, last: now}
}

func (p *progress) shown() bool { return p.to != nil }

// update lets change count what has been done, and draws the line anew a few times a second.
func (p *progress) update(change func()) {
	const every = 200 * time.Millisecond
	if !p.shown() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	if now := time.Now(); now.Sub(p.last) >= every {
		p.last = now
		fmt.Fprint(p.to, "\r\x1b[K"+p.line(now.Sub(p.begun)))
	}
}

// end wipes the line.
func (p *progress) end() {
	if p.shown() {
		fmt.Fprint(p.to, "\r\x1b[K")
	}
}

// newRunProgress shows how many runs are over, and returns what counts one more. It shows nothing of runs that take no time to speak of.
func newRunProgress(to io.Writer, total uint64) (p *progress, done func(failed uint64)) {
	var finished, failures uint64
	p = newProgress(to, func(time.Duration) string {
		return fmt.Sprintf("%d of %d runs, %d failed", finished, total, failures)
	})
	return p, func(failed uint64) { p.update(func() { finished, failures = finished+1, failed }) }
}

func perSecond(n uint64, took time.Duration) uint64 {
	if took <= 0 {
		return 0
	}
	return uint64(float64(n) / took.Seconds())
}

// thousands writes 1234567 as 1,234,567.
func thousands[N int | uint64](n N) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// count is "1 run" or "12 runs".
func count[N int | uint64](n N, what string) string { return plural(fmt.Sprint(n), what) }

// countThousands is count with separators: "1,234 runs".
func countThousands(n uint64, what string) string { return plural(thousands(n), what) }

func plural(n, what string) string {
	if n != "1" {
		what += "s"
	}
	return n + " " + what
}
