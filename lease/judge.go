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
	case p.Verdict != nil && r.Token != p.Base:
		return superseded
	case r.Holder == "", r.Holder == owner && !p.Exclusive, p.Override, slices.Contains(p.TakeOver, r.Holder):
		return mayTake
	case patience != Infinite && silent >= patience:
		return mayTake
	default:
		return heldByOther
	}
}
