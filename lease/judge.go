package lease

import (
	"slices"
	"time"
)

// ruling is what a proposal may do with a record.
type ruling uint8

const (
	// mayTake: the record may be replaced.
	mayTake ruling = iota
	// heldByOther: a holder that may not be replaced.
	heldByOther
	// superseded: the verdict builds on another token than the record's.
	superseded
)

// judge is the whole rule of who may replace whom. silent is for how long the record was seen unchanged from here, by the
// local clock; no time in the record is looked at.
func judge(p *Proposal, r *Record, owner string, silent, patience time.Duration) ruling {
	switch {
	case p.Verdict != nil && (r.Token != p.Base || r.Behind): // what the store has lost may have been newer than Base
		return superseded
	case p.Verdict != nil && p.BaseBy != "" && r.Verdict != nil && string(r.Verdict.DecidedBy) != p.BaseBy:
		return superseded
	case r.Holder == "", r.Holder == owner && !p.Exclusive, p.Override, slices.Contains(p.TakeOver, r.Holder):
		return mayTake
	case patience != Infinite && silent >= patience:
		return mayTake
	default:
		return heldByOther
	}
}

// rule judges p by what is known, and says how long it has to wait where the lease is held. Infinite: for ever, as far as is known.
func (l *Lease) rule(p *Proposal, s Snapshot) (r ruling, wait time.Duration) {
	silent, patience := l.silence(s)
	switch r = judge(p, &s.Record, l.owner, silent, patience); {
	case r == mayTake && s.Record.Holder == l.owner && !p.Override && p.needsCheck() && l.owed() > 0:
		return heldByOther, l.owed()
	case r == heldByOther && patience != Infinite:
		return r, patience - silent
	default:
		return r, Infinite
	}
}
