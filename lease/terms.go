package lease

import (
	"fmt"
	"time"
)

// terms are the times of one grant.
type terms struct {
	// ttl is what the record says: how long others wait for a silent holder. Infinite: for ever.
	ttl time.Duration
	// window is how long the holder trusts one write, counted from the moment it was sent. Infinite: for ever.
	window time.Duration
	// interval is the time between two heartbeats. Zero: none, the grant ends with its window.
	interval time.Duration
}

// terms returns those that p asks for. The error wraps ErrRefused when they would not hold: others judge by the settings.
func (l *Lease) terms(p *Proposal) (terms, error) {
	switch {
	case p.For == 0 && p.KeepAlive:
		return terms{}, fmt.Errorf("%w: Proposal.KeepAlive needs Proposal.For; without either the settings' heartbeats apply", ErrRefused)
	case p.For == 0:
		return terms{l.settings.HeartbeatTimeout, l.window, l.settings.Interval()}, nil
	case p.For != 0 && len(p.TakeOver) > 0:
		return terms{}, fmt.Errorf("%w: Proposal.For and Proposal.TakeOver exclude each other: the holder that is replaced may believe longer", ErrRefused)
	case p.For < 0:
		return terms{}, fmt.Errorf("%w: Proposal.For is %v: it must be positive", ErrRefused, p.For)
	case l.limited:
		return terms{}, fmt.Errorf("%w: Proposal.For is %v: other users of this store expire holders by a rule of their own", ErrRefused, p.For)
	case p.For > l.settings.HeartbeatTimeout:
		return terms{}, fmt.Errorf("%w: Proposal.For is %v: others wait no longer than heartbeat-timeout (%v)", ErrRefused, p.For, l.settings.HeartbeatTimeout)
	}
	s := Settings{HeartbeatTimeout: p.For, OperationTimeout: l.settings.OperationTimeout}
	t := terms{ttl: p.For, window: s.Window()}
	if p.KeepAlive {
		if t.interval = l.settings.Interval(); p.For != Infinite {
			t.interval = p.For / 10
		}
	}
	return t, nil
}

// recorded is the ttl as a record says it.
func (t terms) recorded() time.Duration {
	if t.ttl == Infinite {
		return 0
	}
	return t.ttl
}

// deadline is how long a write that was sent at start keeps the lease; ok is false if for ever.
func (t terms) deadline(start time.Time) (deadline time.Time, ok bool) {
	if t.window == Infinite {
		return time.Time{}, false
	}
	return start.Add(t.window), true
}
