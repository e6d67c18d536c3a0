package kubernetes_test

import (
	"fmt"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// guard looks at both parties all the time. What it finds is a broken promise, whatever the cell is about.
type guard struct {
	a, b *party

	stop chan struct{}
	done sync.WaitGroup

	looks    int
	highest  uint64
	owner    string
	problems []string
}

// watchOver starts a guard that ends with the cell.
func (c *cell) watchOver() {
	g := &guard{a: c.a, b: c.b, stop: make(chan struct{})}
	g.done.Go(g.run)
	c.cleanup(func() {
		close(g.stop)
		g.done.Wait()
		for _, problem := range g.problems {
			c.Errorf("%s", problem)
		}
		if g.looks == 0 {
			c.Errorf("the guard never looked")
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

// honest checks what A believes after an outcome against the object, as an independent client read it right then (S4).
func (c *cell) honest(out linear.Answer, seen lease.Snapshot) {
	r, mine := seen.Record, c.a.lastNonce()
	if out.Kind != sbr.Granted {
		if c.a.Check() || c.a.Token() != 0 {
			c.Errorf("S4: A was told %q and believes to hold the lease", out.Kind)
		}
		if out.Kind == sbr.Held && r.Nonce == mine {
			c.Errorf("Held, but the object has A's own attempt %s: %+v", mine, r)
		}
		if (out.Kind == sbr.Unknown) != (out.Err != nil) {
			c.Errorf("an unknown outcome, and no other, has an error: %v", out)
		}
		return
	}
	if r.Holder != "A" || r.Nonce != mine || r.Token != out.Record.Token {
		c.Errorf("S4: A was granted token %d with attempt %s, the object says %+v", out.Record.Token, mine, r)
	}
	if c.a.Token() != r.Token {
		c.Errorf("A was granted token %d and says %d", r.Token, c.a.Token())
	}
}
