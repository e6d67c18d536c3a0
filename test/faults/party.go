package faults

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

// Party is one owner, and what it was told.
type Party struct {
	*lease.Lease
	Name string

	mark   string // what its nonces begin with
	mu     sync.Mutex
	nonce  string
	tries  int
	held   <-chan struct{}
	losses int
}

// NewParty returns a party that ends with the cell. Its nonces begin with mark.
func NewParty(t *T, name, mark string, store lease.Store, s lease.Settings, log *slog.Logger) *Party {
	p := &Party{Name: name, mark: mark}
	l, err := lease.New(store, name, s, lease.Options{Nonce: p.nextNonce, Logger: log})
	require.NoError(t, err)
	p.Lease = l
	t.Cleanup(l.Close)
	return p
}

func (p *Party) nextNonce() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tries++
	p.nonce = fmt.Sprintf("%s/%d", p.mark, p.tries)
	return p.nonce
}

// LastNonce is that of the last attempt.
func (p *Party) LastNonce() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nonce
}

// Ask acquires, and counts the loss of what was granted.
func (p *Party) Ask(ctx context.Context) linear.Answer {
	out := linear.AnswerOf(p.Acquire(ctx, lease.Proposal{}))
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := out.Grant; g != nil && g.Done() != p.held {
		p.held = g.Done()
		out.Following(func(error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.losses++
		})
	}
	return out
}

// Losses is how often it was told that it has lost the lease.
func (p *Party) Losses() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.losses
}

// OutcomeText is an outcome in the words of the tables.
func OutcomeText(out linear.Answer) string {
	switch {
	case out.Kind == sbr.Held:
		return "held by " + out.Record.Holder
	case out.Kind == sbr.Unknown && errors.Is(out.Err, lease.ErrRefused):
		return "unknown (refused)"
	default:
		return out.Kind.String()
	}
}

// ReleaseText is the outcome of a release in the words of the tables.
func ReleaseText(err error) string {
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

// Describe is what a record holds in the words of the tables.
func Describe(s lease.Snapshot) string {
	switch r := s.Record; {
	case s.Version == "":
		return "absent"
	case r.Holder == "":
		return fmt.Sprintf("free %d", r.Token)
	default:
		return fmt.Sprintf("%s %d", r.Holder, r.Token)
	}
}
