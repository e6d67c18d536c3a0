package faults

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// guard looks at both parties all the time. What it finds is a broken promise, whatever the cell is about.
type guard struct {
	a, b *Party

	stop chan struct{}
	done sync.WaitGroup

	looks    int
	highest  uint64
	owner    string
	problems []string
}

// WatchOver looks at A and B all the time until the end of the cell.
func WatchOver(t *T, a, b *Party) {
	g := &guard{a: a, b: b, stop: make(chan struct{})}
	g.done.Go(g.run)
	t.Cleanup(func() {
		close(g.stop)
		g.done.Wait()
		for _, problem := range g.problems {
			t.Errorf("%s", problem)
		}
		if g.looks == 0 {
			t.Errorf("the guard never looked")
		}
	})
}

func (g *guard) run() {
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for len(g.problems) == 0 {
		g.look()
		select {
		case <-ticker.C:
		case <-g.stop:
			return
		}
	}
}

// look finds two holders at one instant: if A has the same token before and after, it had it between, too.
func (g *guard) look() {
	g.looks++
	before, b := g.a.Token(), g.b.Token()
	if after := g.a.Token(); before != 0 && before == after && b != 0 {
		g.report("S3: both hold the lease, A under token %d and B under token %d", before, b)
	}
	g.see("A", before)
	g.see("B", b)
}

// see checks what fences: tokens only grow, and one token has one owner.
func (g *guard) see(owner string, token uint64) {
	switch {
	case token == 0:
	case token < g.highest:
		g.report("S3: %s holds under token %d after %s did under token %d", owner, token, g.owner, g.highest)
	case token == g.highest && owner != g.owner:
		g.report("S3: %s and %s both got token %d", g.owner, owner, token)
	default:
		g.highest, g.owner = token, owner
	}
}

func (g *guard) report(format string, args ...any) {
	g.problems = append(g.problems, fmt.Sprintf(format, args...))
}

// Honest checks what A believes after an outcome against the record, as an independent client read it right
// then (S4).
func Honest(t *T, a *Party, out linear.Answer, seen lease.Snapshot) {
	r, mine := seen.Record, a.LastNonce()
	if out.Kind != sbr.Granted {
		if a.Check() || a.Token() != 0 {
			t.Errorf("S4: A was told %q and believes to hold the lease", out.Kind)
		}
		if out.Kind == sbr.Held && r.Nonce == mine {
			t.Errorf("Held, but the record has A's own attempt %s: %+v", mine, r)
		}
		if (out.Kind == sbr.Unknown) != (out.Err != nil) {
			t.Errorf("an unknown outcome, and no other, has an error: %v", out)
		}
		return
	}
	if r.Holder != "A" || r.Nonce != mine || r.Token != out.Record.Token {
		t.Errorf("S4: A was granted token %d with attempt %s, the record says %+v", out.Record.Token, mine, r)
	}
	if a.Token() != r.Token {
		t.Errorf("A was granted token %d and says %d", r.Token, a.Token())
	}
}

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
