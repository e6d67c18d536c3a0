package explore

import (
	"fmt"
	"strings"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

// Describe says what a move is, in a line.
func (w *walker) Describe(s *walkState, m walk.Move) string {
	who := walkName(int(m.At))
	switch m.Kind {
	case walkDue:
		return who + ": a deadline"
	case walkCrashes:
		return who + " CRASHES"
	case walkPauses:
		return who + " is PAUSED"
	case walkLeaves:
		return who + " LEAVES"
	case walkRemoves:
		i, j := ofPair(m.At)
		return walkName(i) + " is told to FORCE-LEAVE " + walkName(j)
	case walkRestarts:
		return who + " RESTARTS, and is " + walkName(w.first+int(m.At)) + " from now on"
	case walkForgets:
		if m.At == 0 {
			return "the record is DELETED"
		}
		return fmt.Sprintf("the record becomes verdict %d AGAIN", m.At)
	case walkLooksUp:
		return who + " reads the lease, as it does now and then"
	case walkContinues:
		return who + " goes on after its pause"
	}
	p := s.flying[m.At]
	e := &w.events.all[p.event()]
	who = walkName(p.member())
	text := who + " " + e.String()
	if e.request() {
		text = "the store gets from " + who + ": " + e.String()
	}
	switch m.Kind {
	case walkDelayed:
		return "LATE from now on: " + text
	case walkLostNow:
		return "LOST: " + text
	}
	if p.late() {
		text += " (late)"
	}
	return text
}

// String says what the event is, to be read after the name of the member.
func (e walkEvent) String() string {
	from := walkName(int(e.who))
	switch e.what {
	case walkSight:
		if e.flag == sightBack {
			return "reaches " + from + " again"
		}
		return "notices that " + from + " does not answer"
	case walkRead:
		return "read the lease"
	case walkRestore:
		return fmt.Sprintf("write %v back", e.record.verdict)
	case walkAcquire:
		text := fmt.Sprintf("acquire the lease over token %d, %v", e.base, e.record.verdict)
		if e.mask != 0 {
			text += ", in the place of " + names(e.mask)
		}
		return text
	case walkRelease:
		return "release the lease"
	case walkRecords:
		return fmt.Sprintf("record beside verdict %d that %s left", e.base, names(e.mask))
	case walkReadAnswer:
		return "has read: " + e.record.String()
	case walkAcquireAnswer:
		return "hears that its attempt is " + sbr.Outcome(e.flag).String() + ": " + e.record.String()
	case walkReleaseAnswer:
		return "hears that the lease is released"
	case walkObserved:
		return "sees by its watch: " + e.record.String()
	case walkTold:
		return fmt.Sprintf("is told by %s verdict %d, %v", from, e.record.verdict.token, e.record.verdict)
	case walkOrdered:
		return fmt.Sprintf("is ordered by %s: %v, down %s", from, sbr.Kind(e.flag), names(e.mask))
	case walkAsked:
		return "is asked by " + from + " to race in its place"
	case walkMet:
		return "meets " + from + ", which takes the place of " + names(e.mask)
	case walkLeft:
		return "hears that " + from + " has left"
	case walkUnlisted:
		return "hears that " + from + " was removed"
	case walkCleared:
		if e.flag != 0 {
			return "hears from " + from + ", which does not know its own fate, that nothing speaks against it"
		}
		return "hears from " + from + " that nothing speaks against it"
	default:
		return "goes on"
	}
}

// String says who stays and who goes.
func (v walkVerdict) String() string {
	text := "survivors " + names(v.survivors) + ", down " + names(v.down)
	if v.partial {
		text += " and perhaps others"
	}
	return text
}

// String says what the store holds.
func (r walkRecord) String() string {
	holder := "nobody"
	if r.holder > 0 {
		holder = walkName(int(r.holder) - 1)
	}
	if r.verdict.token == 0 {
		return "no verdict, held by " + holder
	}
	return fmt.Sprintf("verdict %d, %v, held by %s", r.verdict.token, r.verdict, holder)
}

func names(mask uint8) string {
	if mask == 0 {
		return "nobody"
	}
	var all []string
	for _, id := range walkIDs(mask) {
		all = append(all, string(id))
	}
	return strings.Join(all, " ")
}
