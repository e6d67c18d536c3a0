package world

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Activity says how much of a run was lost or dangerous. It is measured with Options.Measure only.
type Activity struct {
	// DoubleActive is how long two members that could not reach each other were both up after their partition was decided: after the
	// first verdict, order or downing since the cut. Before that both sides always run.
	DoubleActive time.Duration
	// NobodyActive is how long nobody was up: running, not stopped, not downed.
	NobodyActive time.Duration
	// BothSides says that at the end two members that cannot reach each other are up.
	BothSides bool
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
	if !w.opts.Measure {
		return
	}
	a := &w.activity
	span := w.now - a.at
	a.at = w.now
	if a.nobody {
		a.NobodyActive += span
	}
	if a.apart && a.any && a.decided >= a.since {
		a.DoubleActive += span
	}
	nobody, apart := w.howItIs()
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

// howItIs looks for members that are up, and for two of them that cannot reach each other.
func (w *World) howItIs() (nobody, apart bool) {
	up := slices.DeleteFunc(w.up(), func(p *process) bool { return p.paused })
	for i, p := range up {
		others := up[:min(i, 1)] // whoever reaches the first one reaches all that do
		if i > 0 && (w.opts.Probe.On() && len(w.net.cut) > 0 || strangers(p, up[0])) {
			others = up[:i]
		}
		for _, q := range others {
			if w.apart(p, q) && !strangers(p, q) {
				return false, true
			}
		}
	}
	return len(up) == 0, false
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
