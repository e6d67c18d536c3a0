package lock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/serf-sbr/serf-sbr/lease/lock"
)

// The semantics of the three types, told in stories. "x" is a lock of the type, "twin" another object of its
// owner, "a" somebody else's single-entrant lock. The answers are those of a single-entrant, a re-entrant and
// an overriding x: Y is true, n is false. That nothing else is true either is what
// TestProperty_TheTableAndNothingElse shows.
var semantics = []struct{ story, moves, single, reentrant, overriding string }{
	// acquire
	{"absent", "x+", "Y", "Y", "Y"},
	{"released", "a+ a- x+", "YYY", "YYY", "YYY"},
	{"another's live lock", "a+ x+", "Yn", "Yn", "YY"},
	{"another's, at the moment it expires", "a+ x+ almost x+ now x+", "YnnY", "YnnY", "YYYY"},
	{"one's own again", "x+ x+", "Yn", "YY", "YY"},
	{"one's own again, by another object", "x+ twin+", "Yn", "YY", "YY"},
	{"one's own, at the moment it expires", "x+ almost x+ now x+", "YnY", "YYY", "YYY"},
	{"the duration starts anew with another acquire", "x+ half x+ half a+", "Ynn", "YYn", "YYn"},
	// release
	{"one's own, and a second time", "x+ x- x-", "YYn", "YYn", "YYn"},
	{"once for all entries", "x+ x+ x- x- a+", "YnYnY", "YYYnY", "YYYnY"},
	{"without an acquire", "x-", "n", "n", "n"},
	{"one's own, expired", "x+ almost now x-", "Yn", "Yn", "Yn"},
	{"one's own, although it may not be used any more", "x+ almost x-", "YY", "YY", "YY"},
	{"another's live lock", "a+ x- a-", "YnY", "YnY", "YYn"},
	{"another's, expired", "a+ x- almost now x- x+", "YnnY", "YnnY", "YYnY"},
	{"that of another object with the same owner", "x+ twin- x-", "YYn", "YYn", "YYn"},
	{"by force: whoever's, once", "x! a+ x! x! x+", "nYYnY", "nYYnY", "nYYnY"},
}

func TestSemantics(t *testing.T) {
	for _, c := range semantics {
		for kind, want := range map[lock.Type]string{
			lock.SingleEntrant: c.single, lock.Reentrant: c.reentrant, lock.Overriding: c.overriding,
		} {
			t.Run(c.story+", "+kind.String(), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) { assert.Equal(t, want, w.play(kind, c.moves)) })
			})
		}
	}
}

// play makes the moves: LOCK+ acquires, LOCK- releases, LOCK! frees by force, and the others let time pass:
// half of the duration, all but a nanosecond, or that nanosecond.
func (w *world) play(kind lock.Type, moves string) (answers string) {
	locks := map[string]*lock.Lock{
		"x": w.lock("x", kind), "twin": w.lock("twin", kind, owner("x")), "a": w.lock("a", lock.SingleEntrant),
	}
	pauses := map[string]time.Duration{"half": d / 2, "almost": d - time.Nanosecond, "now": time.Nanosecond}
	for move := range strings.FieldsSeq(moves) {
		if pause, waits := pauses[move]; waits {
			time.Sleep(pause)
			continue
		}
		k := locks[strings.TrimRight(move, "+-!")]
		does := map[byte]func(context.Context) (bool, error){'+': k.Acquire, '-': k.Release, '!': k.ForceRelease}[move[len(move)-1]]
		if w.sure(does(w.t.Context())) {
			answers += "Y"
		} else {
			answers += "n"
		}
	}
	return answers
}
