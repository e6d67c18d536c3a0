package sbr

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"
)

// AppendState appends a canonical encoding of everything that decides how the resolver will behave, and returns the
// extended slice. Times are relative to the last call, attempt numbers are left out: two resolvers with equal encodings behave
// alike from here on, so a model checker may visit only one of them.
func (r *Resolver) AppendState(b []byte) []byte {
	b = appendBools(b, r.armed, r.suspended, r.down, r.left, r.read, r.holding)
	b = appendBools(b, r.race != nil, r.check != nil, r.removals > 0)
	b = r.appendTimes(b)
	b = binary.AppendUvarint(b, uint64(r.changes))
	b = binary.AppendUvarint(b, uint64(min(r.rechecks, maxBackoff)))
	for i := range r.members {
		m := &r.members[i]
		b = appendText(b, string(m.ID))
		b = append(b, byte(m.Status))
		b = appendBools(b, m.Unreachable, m.awaiting)
		b = binary.AppendUvarint(b, m.Seen)
	}
	b = appendIDs(b, r.seenBy)
	for _, rep := range r.reports {
		b = appendText(appendText(b, string(rep.Observer)), string(rep.Subject))
	}
	b = appendText(b, string(r.record.Holder))
	b = binary.AppendUvarint(b, r.record.Token)
	b = appendVerdict(b, &r.verdict)
	b = appendIDs(b, slices.Sorted(slices.Values(r.Orders())))
	b = appendIDs(b, r.waitGone)
	b = r.appendAttempt(b, r.heldSince, r.holding)
	return r.appendRace(b)
}

// appendTimes leaves out the times that decide nothing at present, so that states which differ only in what is over are equal.
func (r *Resolver) appendTimes(b []byte) []byte {
	matters := func(at time.Duration, does bool) {
		if !does {
			at = never
		}
		b = r.appendTime(b, at)
	}
	matters(r.lastChange, !r.armed || r.suspects > 0 || r.race != nil || r.changes > 0)
	matters(r.firstChange, r.changes > 0)
	matters(r.suspendedAt, r.suspended)
	b = appendBools(b, r.suspects > 0 && r.idleAt == r.lastChange)
	matters(r.releaseAt, true)
	matters(r.removeAt, true)
	matters(r.passAt, true)
	matters(r.recheckAt, true)
	return r.appendAttempt(b, r.rechecking, r.recheckAt != never)
}

// appendAttempt appends how many attempts ago one was made; zero for none.
func (r *Resolver) appendAttempt(b []byte, attempt uint64, matters bool) []byte {
	if attempt == 0 || !matters {
		return append(b, 0)
	}
	return binary.AppendUvarint(b, r.attempt-attempt+1)
}

func (r *Resolver) appendRace(b []byte) []byte {
	if rc := r.race; rc != nil {
		b = appendBools(b, rc.watching, rc.suspended, rc.heard, rc.lastErr != "")
		b = r.appendAttempt(b, rc.inflight, true)
		b = r.appendTime(b, rc.since)
		b = r.appendTime(b, rc.notBefore)
		b = r.appendTime(b, rc.deadline)
		if rc.inflight != 0 {
			b = r.appendTime(b, rc.answerBy)
		}
		b = binary.AppendUvarint(b, uint64(rc.asked))
		b = binary.AppendUvarint(b, rc.base)
	}
	if c := r.check; c != nil {
		b = r.appendAttempt(b, c.inflight, true)
		b = appendBools(b, c.failed, c.asking, c.gap > 0, c.untold, c.alone)
		b = appendIDs(b, slices.Sorted(maps.Keys(c.cleared)))
		b = r.appendTime(b, c.until)
		b = r.appendTime(b, c.retryAt)
		if c.inflight != 0 {
			b = r.appendTime(b, c.answerBy)
		}
	}
	return b
}

func (r *Resolver) appendTime(b []byte, at time.Duration) []byte {
	if at == never {
		return binary.AppendVarint(b, int64(never))
	}
	return binary.AppendVarint(b, int64(at-r.now))
}

func appendVerdict(b []byte, v *Verdict) []byte {
	b = binary.AppendUvarint(b, v.Token)
	b = appendBools(b, v.Partial)
	return appendIDs(appendIDs(b, v.Survivors), v.Down)
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
