package sbr

import (
	"slices"
)

// Verdict is what the winner of a race writes into the lease, in the same conditional write as its own name.
// It outlives the lease: a member that reads it later learns whether it may go on.
//
// Verdicts form a chain. The next verdict may be written only by a member that stands in the last one. Its
// survivors are survivors of the last one, or members that had read it when they started: the survivors only
// shrink. The zero Verdict means that none was ever written.
type Verdict struct {
	// Token is the fencing token the verdict was written under. It grows with each verdict; zero: no verdict.
	Token uint64 `json:"token"`
	// Survivors may go on. A member that is neither listed nor newer than the verdict is downed.
	Survivors []ID `json:"survivors,omitempty"`
	// Down are those that the writer knew and cut off, for people and the deny list; Survivors alone decides.
	Down []ID `json:"down,omitempty"`
	// DecidedBy is the writer.
	DecidedBy ID `json:"decided-by,omitempty"`
	// Reason is the decision in one sentence.
	Reason string `json:"reason,omitempty"`
	// Left are the members that have left in peace since, in that order: no member waits for them, and no
	// later verdict lists them. Heirs are the members that were here when the last survivor or heir before
	// them left, see Remaining. Both are added to the record of a verdict; what it decides stays as it is.
	Left  []ID `json:"left,omitempty"`
	Heirs []ID `json:"heirs,omitempty"`
	// Partial says that Survivors is incomplete (it was sent in pieces): only a member named in Down is
	// downed.
	Partial bool `json:"partial,omitempty"`
}

// Standing is what a verdict says of one incarnation.
type Standing uint8

// The standings. Unknown occurs only under a partial verdict.
const (
	StandingUnknown Standing = iota
	// Survivor: the verdict lists the member among the survivors.
	Survivor
	// Newer: the member had read this verdict (or a later one) when it started, or no verdict exists.
	Newer
	// Out: the member is older than the verdict and not among its survivors. It never takes part again.
	Out
)

// Standing returns what v says of the incarnation id, which had read the token seen when it started.
func (v *Verdict) Standing(id ID, seen uint64) Standing {
	switch {
	case v == nil || v.Token == 0 || seen >= v.Token:
		return Newer
	case contains(v.Survivors, id):
		return Survivor
	case contains(v.Down, id):
		return Out
	case v.Partial:
		return StandingUnknown
	default:
		return Out
	}
}

// MayWrite reports whether the incarnation may write the verdict after v.
func (v *Verdict) MayWrite(id ID, seen uint64) bool { return v.Standing(id, seen) != Out }

// Eligible reports whether the incarnation may be listed among the survivors of the verdict after v.
// Under a partial verdict only named survivors and newer members are eligible.
func (v *Verdict) Eligible(id ID, seen uint64) bool {
	s := v.Standing(id, seen)
	return s == Survivor || s == Newer
}

// conflicts reports whether two verdicts have one token and are not the same: the store has lost one of them.
// Parts of one verdict do not conflict.
func (v *Verdict) conflicts(o *Verdict) bool {
	switch {
	case v.Token == 0 || v.Token != o.Token:
		return false
	case v.DecidedBy != o.DecidedBy && v.DecidedBy != "" && o.DecidedBy != "":
		return true
	default:
		return !v.Partial && !o.Partial && !(slices.Equal(v.Survivors, o.Survivors) && slices.Equal(v.Down, o.Down))
	}
}

// Clone returns a copy that shares nothing with v.
func (v *Verdict) Clone() *Verdict {
	if v == nil {
		return nil
	}
	c := *v
	c.Survivors, c.Down = slices.Clone(v.Survivors), slices.Clone(v.Down)
	c.Left, c.Heirs = slices.Clone(v.Left), slices.Clone(v.Heirs)
	return &c
}

// Normalize sorts the lists of what was decided, so that equal verdicts are equal values.
func (v *Verdict) Normalize() {
	slices.Sort(v.Survivors)
	slices.Sort(v.Down)
}

func contains(sorted []ID, id ID) bool {
	_, ok := slices.BinarySearch(sorted, id)
	return ok
}

// Record is what the lease store holds, as far as the resolver cares.
type Record struct {
	// Holder is the incarnation that holds the lease, empty when there is none.
	Holder ID
	// Token is the fencing token; it grows by one with each change of holder or verdict and never goes back.
	Token uint64
	// Verdict is the last verdict, nil if none was ever written.
	Verdict *Verdict
	// Behind says that the store went backwards: it holds less than this, which is the newest token and
	// verdict that were read from it.
	Behind bool
}
