package leasetest

import (
	"context"
	"fmt"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Acquire gives the next answer. The proposal's verdict goes into the Record of a grant; nothing else of it is looked at.
// lost is called by Lose.
func (m *Mock) Acquire(ctx context.Context, p lease.Proposal, lost func(error)) lease.Outcome {
	return proposed(m.once(ctx, lost, nil), p)
}

// AcquireWait passes over answers until there is a grant. After the last one it waits for another Script, or for the end of ctx.
func (m *Mock) AcquireWait(ctx context.Context, p lease.Proposal, lost func(error)) lease.Outcome {
	return proposed(m.wait(ctx, lost, nil), p)
}

func proposed(out lease.Outcome, p lease.Proposal) lease.Outcome {
	if out.Kind == lease.Granted && p.Verdict != nil {
		out.Record.Verdict = p.Verdict.Clone()
		out.Record.Verdict.Token = out.Record.Token
	}
	return out
}

// Check reports whether the mock is held: acquired, and neither lost nor released since.
func (m *Mock) Check() bool { return m.isHeld() }

// Release gives up what is held, and is NotReleased without.
func (m *Mock) Release(context.Context) lease.ReleaseOutcome { return m.release() }

// ForceRelease is Release, whoever is named.
func (m *Mock) ForceRelease(context.Context, string) lease.ReleaseOutcome { return m.release() }

// Close gives up what is held without a release, and calls no callback.
func (m *Mock) Close() { m.end(fmt.Errorf("%w: %w", lease.ErrLost, lease.ErrClosed)) }
