package wire

import (
	"slices"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Telling is the message by which from sends a verdict: whole if it fits into one payload.
func Telling(from sbr.ID, v *sbr.Verdict) Message {
	return Message{
		Kind: KindVerdict, From: from, Token: v.Token, By: v.DecidedBy, Reason: v.Reason,
		Up: v.Survivors, Down: v.Down, Whole: !v.Partial,
	}
}

// Ordering is the message by which from gives an order to the targets. unlisted says whether from's own
// membership has forgotten a suspect: members of version 1 do not read an order with suspects, and need none
// unless they forgot them.
func Ordering(from sbr.ID, o *sbr.Order, targets []sbr.ID, unlisted func(sbr.ID) bool) Message {
	m := Message{Kind: KindOrder, From: from, Decided: o.Kind.String(), Reason: o.Reason, Down: o.Down}
	m.Up = slices.DeleteFunc(slices.Clone(targets), func(id sbr.ID) bool { return slices.Contains(o.Down, id) })
	if slices.ContainsFunc(o.Suspects, unlisted) {
		m.Suspects = Some(o.Suspects)
	}
	return m
}

// Asking is the message by which from asks the targets to race in its place.
func Asking(from sbr.ID, e *sbr.AskToRace) Message {
	return Message{Kind: KindAsk, From: from, Up: e.Targets, Down: Some(e.Suspects), Contact: e.Contact}
}

// Answering is the message with a resolver's answer to the question for a member's standing; nil: there is
// none yet.
func Answering(from sbr.ID, answer sbr.Event) *Message {
	switch a := answer.(type) {
	case sbr.Told:
		m := Telling(from, &a.Verdict)
		return &m
	case sbr.Ordered:
		m := Ordering(from, &a.Order, nil, func(sbr.ID) bool { return false })
		return &m
	case sbr.Cleared:
		return &Message{Kind: KindClear, From: from, Token: a.Token, Unsure: a.Unsure, Down: Some(a.Suspects)}
	default:
		return nil
	}
}

// Event is the resolver's event for the message; nil: none.
func (m *Message) Event() sbr.Event {
	switch m.Kind {
	case KindVerdict:
		v := sbr.Verdict{
			Token: m.Token, Survivors: m.Up, Down: m.Down, DecidedBy: m.By, Reason: m.Reason, Partial: !m.Whole,
		}
		v.Normalize()
		return sbr.Told{From: m.From, Verdict: v}
	case KindOrder:
		k, _ := sbr.ParseKind(m.Decided)
		o := sbr.Order{Kind: k, Down: m.Down, Reason: m.Reason, Suspects: m.Suspects}
		return sbr.Ordered{From: m.From, Order: o}
	case KindAsk:
		return sbr.Asked{From: m.From, Suspects: m.Down, Contact: m.Contact}
	case KindClear:
		return sbr.Cleared{From: m.From, Token: m.Token, Unsure: m.Unsure, Suspects: m.Down}
	default:
		return nil
	}
}
