package sbr

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"
)

// What follows is for model checkers, which number the states of a resolver and try several ways to go on.

// Clone returns an independent copy. The strategy is shared: strategies are stateless.
func (r *Resolver) Clone() *Resolver {
	c := *r
	c.effects = nil
	c.members = slices.Clone(r.members)
	c.index = maps.Clone(r.index)
	c.orders = maps.Clone(r.orders)
	if r.race != nil {
		rc := *r.race
		c.race = &rc
	}
	if r.question != nil {
		q := *r.question
		q.cleared = maps.Clone(q.cleared)
		c.question = &q
	}
	return &c
}

// SkipAttempts leaves out the next n numbers of attempts. Encodings know no numbers, so a model checker that
// goes on with one of two equal resolvers may hand it an answer that is older than its first attempt.
func (r *Resolver) SkipAttempts(n uint64) { r.attempt += n }

// AppendState appends a canonical encoding of everything that decides how the resolver will behave, and
// returns the extended slice. Times are relative to now, a moment between the last call and the next one;
// attempt numbers are left out: two resolvers with equal encodings behave alike from here on, so a model
// checker may visit only one of them.
func (r *Resolver) AppendState(b []byte, now time.Duration) []byte {
	b = appendBools(b, r.armed, r.suspended, r.down, r.left, r.read, r.holding, r.unsure, r.unsure && r.departed)
	b = appendBools(b, r.record.Behind)
	if r.cfg.StableAfter == Auto {
		b = binary.AppendVarint(b, int64(r.stable))
	}
	b = binary.AppendVarint(b, int64(r.tornPause(r.verdict.Token)))
	b = appendBools(b, r.race != nil, r.question != nil, r.removals > 0, r.changes > 0)
	b = r.appendTimes(b, now)
	if r.recheckAt != never {
		b = binary.AppendUvarint(b, uint64(min(r.rechecks, maxBackoff)))
	}
	b = binary.AppendUvarint(b, uint64(len(r.members)))
	for m := range r.each {
		b = appendText(b, string(m.ID))
		b = append(b, byte(m.Status))
		b = appendBools(b, m.Unreachable, m.awaiting, m.Unlisted, m.mustGo && r.holding)
		b = binary.AppendUvarint(b, m.Seen)
	}
	b = appendIDs(b, r.indirect)
	// How long something lasts matters in unrest, and only up to stable-after.
	ages := NeedsLease(r.strategy) && (r.changes > 0 || r.race != nil && r.race.unrest)
	age := func(since time.Duration) {
		if ages {
			b = binary.AppendUvarint(b, uint64(min(now-since, r.stableAfter())))
		}
	}
	for i, rep := range r.reports {
		b = appendText(appendText(b, string(rep.Observer)), string(rep.Subject))
		if ages {
			age(r.reportedSince[i])
		}
	}
	for m := range r.each {
		if m.suspect() {
			age(m.since)
		}
	}
	b = appendText(b, string(r.record.Holder))
	b = binary.AppendUvarint(b, r.record.Token)
	b = appendVerdict(b, &r.verdict)
	b = appendIDs(b, slices.Sorted(slices.Values(r.Orders())))
	b = r.appendAttempt(b, r.heldSince, r.holding)
	return r.appendContact(r.appendRace(b, now), now)
}

// appendTimes leaves out the times that decide nothing at present: states that differ only in them are equal.
func (r *Resolver) appendTimes(b []byte, now time.Duration) []byte {
	matters := func(at time.Duration, does bool) {
		if !does {
			at = never
		}
		b = appendTime(b, at, now)
	}
	raced := r.racing() && r.race.target == "" && !r.race.unrest
	matters(r.lastChange, !r.armed || r.suspects > 0 && !raced || r.changes > 0)
	matters(r.firstChange, r.changes > 0)
	matters(r.suspendedAt, r.suspended && !NeedsLease(r.strategy) || !r.armed && r.suspects > 0)
	b = appendBools(b, r.suspects > 0 && r.idleAt == r.lastChange)
	matters(r.releaseAt, true)
	matters(r.removeAt, true)
	matters(r.passAt, true)
	matters(r.recheckAt, true)
	matters(r.readAt, r.recheckAt == never && r.readsNowAndThen())
	matters(r.restoreAt, true)
	return r.appendAttempt(b, r.rechecking, r.recheckAt != never)
}

// appendAttempt appends how many attempts ago one was made; zero for none.
func (r *Resolver) appendAttempt(b []byte, attempt uint64, matters bool) []byte {
	if attempt == 0 || !matters {
		return append(b, 0)
	}
	return binary.AppendUvarint(b, r.attempt-attempt+1)
}

// racing reports whether the race is about the view as it is. What ends it sets lastChange.
func (r *Resolver) racing() bool { return r.race != nil && r.race.since == r.lastChange }

func (r *Resolver) appendRace(b []byte, now time.Duration) []byte {
	if rc := r.race; rc != nil {
		b = appendBools(b, rc.watching, rc.suspended, rc.heard, rc.lastErr != "", r.racing(), rc.deadline != 0,
			r.lastChange == now, rc.unrest)
		b = appendText(b, string(rc.target))
		b = appendBools(b, rc.target != "" && rc.writes > 0, r.mustRead())
		b = r.appendAttempt(b, rc.inflight, true)
		if rc.deadline != 0 {
			b = appendTime(b, rc.deadline, now)
		}
		b = appendTime(b, rc.due(), now) // an attempt without an answer sets the time of the next one when it ends
		b = binary.AppendUvarint(b, uint64(rc.asked))
		b = binary.AppendUvarint(b, rc.base)
	}
	if q := r.question; q != nil {
		b = r.appendAttempt(append(b, byte(q.about)), q.inflight, true)
		b = appendBools(b, q.silent, q.alone)
		b = appendIDs(b, slices.Sorted(maps.Keys(q.cleared)))
		for _, id := range slices.Sorted(maps.Keys(q.cleared)) {
			b = appendBools(b, q.cleared[id])
		}
		b = appendTime(appendTime(b, q.until, now), q.notBefore, now)
		if q.inflight != 0 {
			b = appendTime(b, q.answerBy, now)
		}
	}
	return b
}

// appendContact leaves out what has no effect any more: the silence of a store that was not tried for a
// while.
func (r *Resolver) appendContact(b []byte, now time.Duration) []byte {
	if r.suspects == 0 || r.question != nil || !NeedsLease(r.strategy) {
		return b
	}
	c, silent := &r.contact, r.isSilent(now)
	b = appendBools(b, silent, c.heard, c.wanted, c.standsIn, c.inflight != 0)
	b = r.appendAttempt(b, c.inflight, true)
	if silent {
		b = appendTime(appendTime(b, c.since, now), c.failedAt, now)
		b = appendBools(b, c.began < r.silenceOver(), c.others)
		if c.others {
			b = appendTime(b, c.othersAt, now)
		}
	}
	if c.inflight != 0 {
		b = appendTime(b, c.began, now)
	}
	b = appendTime(b, max(c.due(), now), now)
	return appendText(binary.AppendUvarint(b, uint64(c.asked)), string(c.asker))
}

func appendTime(b []byte, at, now time.Duration) []byte {
	if at == never {
		return binary.AppendVarint(b, int64(never))
	}
	return binary.AppendVarint(b, int64(at-now))
}

func appendVerdict(b []byte, v *Verdict) []byte {
	b = binary.AppendUvarint(b, v.Token)
	b = appendBools(b, v.Partial)
	b = appendText(b, string(v.DecidedBy))
	return appendIDs(appendIDs(appendIDs(appendIDs(b, v.Survivors), v.Down), v.Left), v.Heirs)
}

func appendIDs(b []byte, ids []ID) []byte {
	b = binary.AppendUvarint(b, uint64(len(ids)))
	for _, id := range ids {
		b = appendText(b, string(id))
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendBools(b []byte, bits ...bool) []byte {
	var x byte
	for i, bit := range bits {
		if bit {
			x |= 1 << i
		}
	}
	return append(b, x)
}
