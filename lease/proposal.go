package lease

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Proposal is what an Acquire wants to write. The zero Proposal is a plain lock.
type Proposal struct {
	// Verdict is written together with the holder, in one conditional write. Nil: a plain lock, the last verdict stays.
	// Acquire works on a copy, sorts its lists and fills in its Token.
	Verdict *sbr.Verdict
	// Base is the Record.Token that Verdict builds upon. Any other token in the store means that somebody was faster:
	// Acquire answers a HeldError (Superseded) and nothing is written. Not used without a verdict.
	Base uint64
	// BaseBy is who has written the verdict under Base, as far as that is known: a store that forgot may hold another verdict under
	// that token, which counts as another token. Empty: not compared.
	BaseBy string
	// TakeOver names holders that may be replaced although they are alive: a former leader of one's own side.
	// Until its next heartbeat such a holder does not know. So the verdict counts at once, but Check is false until the former
	// holder's time is over, as if it had crashed; a plain Acquire is refused until then, and a Release frees the record only then
	// (never, where HeartbeatTimeout is Infinite). It excludes For.
	TakeOver []string
	// Override replaces any holder, alive or not, and counts at once. It is for people and tools with that right, who see to it
	// that the former holder has ended.
	Override bool
	// Exclusive makes the lease single-entrant: whoever holds it already is refused like everybody else, this owner included.
	Exclusive bool
	// For is how long the grant lasts. Zero: as long as heartbeats go on. Infinite: until it is released. It must not exceed
	// Settings.HeartbeatTimeout, since others wait no longer than that. Check turns false a little before it is over, as
	// Settings.Window does before HeartbeatTimeout. Two lives under one owner's name must not use it: one cannot know how long the
	// other has asked for, so a shorter time of the second would end the first without a word.
	For time.Duration
	// KeepAlive renews a grant with For by heartbeats, each for the same time.
	KeepAlive bool
}

// plain reports whether any grant of this owner is as good as a new one.
func (p *Proposal) plain() bool {
	return p.Verdict == nil && p.For == 0 && !p.Exclusive && !p.Override
}

func (p Proposal) clone() Proposal {
	p.Verdict = p.Verdict.Clone()
	if p.Verdict != nil {
		p.Verdict.Normalize()
	}
	p.TakeOver = slices.Clone(p.TakeOver)
	return p
}
