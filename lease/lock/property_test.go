package lock_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/lease/lock"
)

// twin is the semantics table without any of what makes it true: an owner and an expiry for each name, here
// one name. The one thing that it shares with the real locks is that each party counts the time since it has
// first seen the record.
type twin struct {
	owner  string
	lasts  time.Duration
	serial int
	seen   map[int]sight
}

type sight struct {
	serial int
	since  time.Time
}

// look is done by each operation of a party.
func (t *twin) look(party int, now time.Time) {
	if t.seen[party].serial != t.serial {
		t.seen[party] = sight{t.serial, now}
	}
}

func (t *twin) live(party int, now time.Time) bool {
	return t.owner != "" && (t.lasts == lock.Forever || now.Sub(t.seen[party].since) < t.lasts)
}

func (t *twin) acquire(party int, owner string, kind lock.Type, lasts time.Duration, now time.Time) bool {
	if t.live(party, now) && kind != lock.Overriding && (kind != lock.Reentrant || t.owner != owner) {
		return false
	}
	t.owner, t.lasts, t.serial = owner, lasts, t.serial+1
	t.look(party, now)
	return true
}

func (t *twin) release(party int, owner string, force bool, now time.Time) bool {
	if !force && t.owner != owner {
		return false
	}
	was := t.live(party, now)
	if t.owner != "" {
		t.owner, t.serial = "", t.serial+1
		t.look(party, now)
	}
	return was
}

// party is one lock of a random type; two of the four share an owner id.
type party struct {
	owner string
	kind  lock.Type
}

type move struct {
	after time.Duration
	party int
	verb  string
	lasts time.Duration
}

func (m move) String() string { return fmt.Sprintf("+%v %d.%s(%v)", m.after, m.party, m.verb, m.lasts) }

var kinds = []lock.Type{lock.SingleEntrant, lock.Reentrant, lock.Overriding}

func drawMoves(rt *rapid.T, parties int) []move {
	durations := []time.Duration{time.Second, 10 * time.Second, time.Minute, lock.DefaultDuration, lock.Forever}
	pauses := append([]time.Duration{0, 0, 1, time.Second - 1, 7 * time.Second}, durations[:4]...)
	moves := make([]move, rapid.IntRange(1, 30).Draw(rt, "moves"))
	for i := range moves {
		moves[i] = move{
			after: rapid.SampledFrom(pauses).Draw(rt, "after"),
			party: rapid.IntRange(0, parties-1).Draw(rt, "party"),
			verb:  rapid.SampledFrom([]string{"acquire", "acquire", "acquire", "release", "force"}).Draw(rt, "verb"),
			lasts: rapid.SampledFrom(durations).Draw(rt, "lasts"),
		}
	}
	return moves
}

// Whatever locks of whatever types do with one name, at whatever times, they answer as the dumb twin does.
func TestProperty_TheTableAndNothingElse(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		parties := make([]party, 4)
		for i := range parties {
			parties[i] = party{
				owner: []string{"a", "b", "c", "a"}[i],
				kind:  rapid.SampledFrom(kinds).Draw(rt, "kind"),
			}
		}
		moves := drawMoves(rt, len(parties))
		wrong := ""
		synctest.Test(t, func(t *testing.T) { wrong = compare(t, parties, moves) })
		if wrong != "" {
			rt.Fatalf("%s\nparties %v\nmoves %v", wrong, parties, moves)
		}
	})
}

// compare plays the moves on real locks and on the twin, and returns the first difference.
func compare(t *testing.T, parties []party, moves []move) string {
	store := leasetest.NewMemory()
	locks := make([]*lock.Lock, len(parties))
	for i, p := range parties {
		k, err := lock.New(store.View(fmt.Sprint(i)), lock.Config{Owner: p.owner, Type: p.kind})
		if err != nil {
			return err.Error()
		}
		defer k.Close()
		locks[i] = k
	}
	dumb := &twin{seen: map[int]sight{}}
	for i, m := range moves {
		time.Sleep(m.after)
		k, p, now := locks[m.party], parties[m.party], time.Now()
		dumb.look(m.party, now)
		var got, want bool
		var err error
		switch m.verb {
		case "acquire":
			got, err = k.AcquireFor(t.Context(), m.lasts)
			want = dumb.acquire(m.party, p.owner, p.kind, m.lasts, now)
			if got && !k.Held() {
				return fmt.Sprintf("move %d: acquired, and not held", i)
			}
		case "release":
			got, err = k.Release(t.Context())
			want = dumb.release(m.party, p.owner, p.kind == lock.Overriding, now)
		case "force":
			got, err = k.ForceRelease(t.Context())
			want = dumb.release(m.party, p.owner, true, now)
		}
		if m.verb != "acquire" && k.Held() {
			return fmt.Sprintf("move %d: released, and still held", i)
		}
		if err != nil || got != want {
			return fmt.Sprintf("move %d (%v): got %v, %v; want %v", i, m, got, err, want)
		}
		if holder := store.Snapshot().Record.Holder; holder != dumb.owner {
			return fmt.Sprintf("move %d (%v): held by %q, want %q", i, m, holder, dumb.owner)
		}
	}
	return ""
}
