package slots

import (
	"fmt"

	"github.com/serf-sbr/serf-sbr/singleton/handover"
)

// broken notes a violation and the way to it. The way is walked again, to tell what the machines did.
func (w *walker) broken(s *state, promise, text string) {
	if w.tell != nil || len(w.report.Broken) >= maxBroken {
		return
	}
	if w.settling > 0 && promise != "C" {
		text += fmt.Sprintf(" (%v later, on the way to rest)", s.now-w.stack[w.depth-1].state.now)
	}
	w.report.Broken = append(w.report.Broken, Violation{Promise: promise, Text: text, Steps: w.steps()})
}

// steps tells the way to the present state, one line for each step.
func (w *walker) steps() (lines []string) {
	again := &walker{Options: w.Options, notice: w.notice}
	var s state
	say := func(format string, args ...any) {
		lines = append(lines, fmt.Sprintf("%-5v ", s.now)+fmt.Sprintf(format, args...))
	}
	again.tell = func(i int, e handover.Effect) {
		switch e := e.(type) {
		case handover.Ask:
			say("    %s asks %s: %v", name(i), e.To, e.Message.Kind)
		case handover.Answer:
			say("    %s answers %s: %v", name(i), name(int(e.Ref)), e.Message.Kind)
		case handover.Start:
			say("    %s STARTS run %d, token %d", name(i), e.Run, e.Token)
		case handover.Stop:
			say("    %s stops run %d: %s", name(i), e.Run, e.Why)
		case handover.AcquireLease:
			say("    %s asks for the lease", name(i))
		case handover.ReleaseLease:
			say("    %s gives the lease back", name(i))
		case handover.Explain:
			if e.Topic == handover.TopicYielded || e.Topic == handover.TopicTaking {
				say("    %s: %s", name(i), e.Text)
			}
		}
	}
	s = again.first()
	for _, f := range w.stack[:w.depth] {
		if f.next == 0 || f.next > len(f.moves) {
			continue // the last one, which has not moved yet
		}
		mv := f.moves[f.next-1]
		if mv.kind != waits {
			say("%s", s.describe(mv))
		}
		again.do(&s, mv)
	}
	return lines
}

var moveTexts = map[moveKind]string{arms: "%s is armed", joins: "%s joins", crashes: "%s CRASHES", pauses: "%s is PAUSED", resumes: "%s goes on after its pause",
	seesDown: "%s sees the losers as down", seesGone: "%s sees the losers removed", notices: "%s notices whom it reaches", hearsDown: "%s hears that it is DOWN",
	resigns: "%s RESIGNS", leaves: "%s LEAVES", withdraws: "%s has no manager any more", departs: "%s is gone in good order",
	endsAgain: "the run of %s ends by itself, for a while", endsDone: "the run of %s ends by itself, for good", grants: "%s is GRANTED the lease",
	doubts: "the lease store gives %s no answer"}

// describe says what a move is, in a line.
func (s *state) describe(mv move) string {
	if text, ok := moveTexts[mv.kind]; ok {
		return fmt.Sprintf(text, name(int(mv.at)))
	}
	switch mv.kind {
	case delivers:
		return "to " + s.letters[mv.at].String()
	case copies:
		return "to " + s.letters[mv.at].String() + "; it will come AGAIN"
	case delays:
		return "LATE from now on: to " + s.letters[mv.at].String()
	case learns:
		return fmt.Sprintf("%s learns of %s", name(int(mv.at>>4)), name(int(mv.at&15)))
	case cuts:
		return "the network is CUT: " + set(mv.at).String() + " from the others"
	case heals:
		return "the network HEALS"
	case decides:
		return "a VERDICT: " + set(mv.at).String() + " stay"
	case expires:
		return fmt.Sprintf("the lease of %s RUNS OUT", name(int(s.holder)))
	default:
		return fmt.Sprintf("the lease of %s is LOST", name(int(s.holder)))
	}
}

// String names the members.
func (s set) String() (text string) {
	for i := range MaxMembers {
		if s.has(i) {
			text += string(name(i))
		}
	}
	return text
}

// String says who gets what.
func (l letter) String() string {
	text := string(name(int(l.to))) + ": "
	switch l.kind {
	case question, answer:
		text += fmt.Sprintf("%v of %s, round %d", l.msg.Kind, name(int(l.from)), l.msg.Round)
	case unserved:
		text += fmt.Sprintf("%s has no manager, round %d", name(int(l.from)), l.msg.Round)
	case leaseAnswer:
		text += fmt.Sprintf("the lease is granted, token %d", l.token)
	case leaseUnknown:
		text += "nobody knows about the lease"
	case leaseLost:
		text += "the lease is lost"
	case leaseReleased:
		text += "the lease is given back"
	case runEnded:
		text += fmt.Sprintf("run %d has ended", l.number)
	}
	if l.late {
		text += " (late)"
	}
	return text
}
