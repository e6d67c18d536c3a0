package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// party is one owner, and what it was told.
type party struct {
	*lease.Lease
	name   string
	mark   string // what its nonces begin with
	mu     sync.Mutex
	nonce  string
	tries  int
	held   <-chan struct{}
	losses []error
	lost   chan struct{}
}

func (c *cell) newParty(name, mark string, store lease.Store) *party {
	p := &party{name: name, mark: mark, lost: make(chan struct{}, 100)}
	l, err := lease.New(store, name, faultSettings, lease.Options{Nonce: p.nextNonce, Logger: c.logger()})
	require.NoError(c, err)
	p.Lease = l
	c.cleanup(l.Close)
	return p
}

func (c *cell) logger() *slog.Logger { return slog.New(slog.NewTextHandler(c.log, nil)) }

func (p *party) nextNonce() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tries++
	p.nonce = fmt.Sprintf("%s/%d", p.mark, p.tries)
	return p.nonce
}

func (p *party) lastNonce() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nonce
}

func (p *party) acquire(ctx context.Context) linear.Answer {
	out := linear.AnswerOf(p.Acquire(ctx, lease.Proposal{}))
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := out.Grant; g != nil && g.Done() != p.held {
		p.held = g.Done()
		out.Following(func(reason error) {
			p.mu.Lock()
			p.losses = append(p.losses, reason)
			p.mu.Unlock()
			p.lost <- struct{}{}
		})
	}
	return out
}

func (p *party) lostTimes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.losses)
}

// outcomeText is an outcome in the words of the table.
func outcomeText(out linear.Answer) string {
	switch {
	case out.Kind == sbr.Held:
		return "held by " + out.Record.Holder
	case out.Kind == sbr.Unknown && errors.Is(out.Err, lease.ErrRefused):
		return "unknown (refused)"
	default:
		return out.Kind.String()
	}
}

func releaseText(err error) string {
	switch {
	case err == nil:
		return "released"
	case errors.Is(err, lease.ErrNotHeld):
		return "not-released"
	case errors.Is(err, lease.ErrRefused):
		return "unknown (refused)"
	default:
		return "unknown"
	}
}
