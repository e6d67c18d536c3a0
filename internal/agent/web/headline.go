package web

import (
	"strings"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// fewNames is how many names a headline holds.
const fewNames = 5

// headline says in words what is going on, and how bad it is.
func (r *reading) headline() (tone, headline, detail string) {
	switch {
	case r.State == sbr.StateDown:
		return toneDown, r.fate(), "It must not work any more. Started again, it comes back as a new incarnation."
	case !r.health.Live.OK:
		return toneBad, sentence("The resolver does not work: " + r.health.Live.Reason), "A node whose resolver fails goes down."
	case r.State == downing.StateStarting:
		return toneBad, "This member does not take part yet.", sentence("The reason: " + r.StartingBecause)
	case r.State == sbr.StateArming:
		return toneWait, "This member is starting: it sees " + count(len(r.alive), "member", "members") + " and decides nothing yet.", r.unready()
	case r.State == sbr.StateWaiting:
		return toneBad, r.asking(), r.waiting()
	case len(r.suspects) > 0:
		return toneBad, r.missing() + ".", r.trouble()
	case r.State == sbr.StateSuspended:
		return toneBad, "Suspended: this member does not know its fate yet.", r.trouble()
	default:
		return r.whole()
	}
}

// fate says why this member is down: its own words, else what it says of its health, else the verdict.
func (r *reading) fate() string {
	why := ""
	for _, e := range r.entries {
		if e.Kind == downing.OccurredDown {
			why = strings.TrimPrefix(e.Text, "down: ")
		}
	}
	if why == "" {
		why = strings.TrimPrefix(r.health.Live.Reason, "down: ")
	}
	if why == "" {
		why = r.Status.Verdict.Reason
	}
	if why == "" {
		return "This member was downed."
	}
	return sentence("This member was downed: " + why)
}

func (r *reading) missing() string {
	n := len(r.suspects)
	verb := " are unreachable: "
	if n == 1 {
		verb = " is unreachable: "
	}
	return number(n) + " of " + count(len(r.alive), "member", "members") + verb + list(r.suspects, fewNames)
}

func (r *reading) asking() string {
	if len(r.suspects) == 0 {
		return "This side waits for the lease " + clean(r.Lease.Name) + "."
	}
	return r.missing() + "; this side waits for the lease."
}

func (r *reading) waiting() string {
	switch r.Lease.Holder {
	case "":
		return "When last heard of, nobody held it."
	case r.Incarnation:
		return "When last heard of, this member held it."
	default:
		return "When last heard of, " + clean(nameOf(r.Lease.Holder)) + " held it."
	}
}

// trouble says what it began with, and who decides.
func (r *reading) trouble() string {
	because := ""
	if r.SuspendedBecause != "" {
		because = sentence("It began with: "+r.SuspendedBecause) + " "
	}
	switch {
	case r.Deadline != nil:
		return strings.TrimSpace(because)
	case r.Leader != "" && r.Leader != r.Member:
		return because + clean(r.Leader) + " leads this side and decides."
	default:
		return because + "No decision is due yet."
	}
}

func (r *reading) unready() string {
	if r.health.Ready.OK {
		return ""
	}
	return sentence("Not ready: " + r.health.Ready.Reason)
}

// whole is the headline while nobody is unreachable.
func (r *reading) whole() (tone, headline, detail string) {
	tone, detail = toneCalm, r.unready()
	if detail != "" || len(r.Disagree)+len(r.Untagged) > 0 {
		tone = toneWait
	}
	if n := len(r.downed); n > 0 {
		detail = strings.TrimSpace(detail + " " + count(n, "downed member is", "downed members are") + " kept out: " + list(r.downed, fewNames) + ".")
	}
	switch n := len(r.alive); {
	case len(r.Reports) > 0:
		p := r.Reports[0]
		more := ""
		if left := len(r.Reports) - 1; left > 0 {
			more = "; " + count(left, "more such report", "more such reports")
		}
		return toneWait, "This member reaches all, but " + clean(p.Observer) + " does not reach " + clean(p.Subject) + more + ".", detail
	case n < 2:
		return tone, "This member is alone: it knows no other.", detail
	case n == 2:
		return tone, "Both members reach each other.", detail
	default:
		return tone, "All " + number(n) + " members reach each other.", detail
	}
}
