package main

import (
	"fmt"
	"io"
	"math"
	"sync"
	"time"
)

// progress is one line on a terminal that says how far a long run is. Elsewhere it shows nothing. Several
// goroutines may use it.
type progress struct {
	to    io.Writer // nil where nobody looks
	what  string
	total uint64

	mu               sync.Mutex
	last             time.Time
	finished, failed uint64
}

// newProgress shows how many of total things are over. It shows nothing of what takes no time to speak of.
func newProgress(to io.Writer, what string, total uint64) *progress {
	if !isTerminal(to) {
		to = nil
	}
	return &progress{to: to, what: what, total: total, last: time.Now()}
}

// done counts one more, and draws the line anew a few times a second.
func (p *progress) done(failed bool) {
	const every = 200 * time.Millisecond
	if p.to == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.finished++; failed {
		p.failed++
	}
	if now := time.Now(); now.Sub(p.last) >= every {
		p.last = now
		of := ""
		if p.total != math.MaxUint64 {
			of = " of " + thousands(p.total)
		}
		fmt.Fprintf(p.to, "\r\x1b[K%s%s %ss, %s failed", thousands(p.finished), of, p.what, thousands(p.failed))
	}
}

// end wipes the line.
func (p *progress) end() {
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
