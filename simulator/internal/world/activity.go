package world

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Activity says how much of a run was lost or dangerous. It is measured with Options.Measure only.
type Activity struct {
	// DoubleActive is how long two members that could not reach each other were both up after their partition
	// was decided: after the first verdict, order or downing since the cut. Before that both sides always
	// run.
	DoubleActive Spans
	// NobodyActive is how long nobody was up: running, not stopped, not downed.
	NobodyActive Spans
	// BothSides says that at the end two members that cannot reach each other are up.
	BothSides bool
}

// Spans are stretches of time, in order, that neither overlap nor touch.
type Spans []struct{ From, To time.Duration }

// Total is how long they are together.
func (s Spans) Total() (all time.Duration) {
	for _, x := range s {
		all += x.To - x.From
	}
	return all
}

// add adds a stretch that begins at the end of the last one, or later.
func (s *Spans) add(from, to time.Duration) {
	switch n := len(*s); {
	case from == to:
	case n > 0 && (*s)[n-1].To == from:
		(*s)[n-1].To = to
	default:
		*s = append(*s, struct{ From, To time.Duration }{from, to})
	}
}

// activity adds up the times. Between two calls of account nothing changes.
type activity struct {
	Activity
	at      time.Duration // up to when it is added up
	nobody  bool
	apart   bool
	since   time.Duration // when two members that are up were first apart
	decided time.Duration // the last verdict, order or downing
	any     bool          // there was one
}

// Activity returns what was measured until now.
func (w *World) Activity() Activity {
	w.account()
	a := w.activity.Activity
	a.BothSides = w.activity.apart
	return a
}

// account adds up the time since the last call, and looks how things are from now on.
func (w *World) account() {
	if !w.opts.Measure || w.now == 0 {
		return
	}
	a := &w.activity
	if a.nobody {
		a.NobodyActive.add(a.at, w.now)
	}
	if a.apart && a.any && a.decided >= a.since {
		a.DoubleActive.add(a.at, w.now)
	}
	a.at = w.now
	up := slices.DeleteFunc(w.up(), func(p *process) bool { return p.paused })
	nobody, apart := len(up) == 0, w.separated(up)
	if apart && !a.apart {
		a.since = w.now
	}
	a.nobody, a.apart = nobody, apart
}

// decidedNow notes that a partition was decided.
func (w *World) decidedNow() {
	w.account()
	w.activity.decided, w.activity.any = w.now, true
}

// measures is the checker that measures: it sees every decision that takes effect.
type measures struct{ unchecked }

func (measures) stepped(w *World, _ *process, effects []sbr.Effect) {
	for _, e := range effects {
		switch e.(type) {
		case sbr.TellOrder, sbr.DownSelf, sbr.Remove:
			w.decidedNow()
		}
	}
}

func (measures) committed(w *World, _ *process, before, after *lease.Record) {
	if after.Token != before.Token {
		w.decidedNow()
	}
}
