//go:build linux

package main

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
)

// class is what a loser had to learn of the verdict by.
type class string

const (
	reaches    class = "reaches the store"
	cutOff     class = "cut off from the store"
	stoodStill class = "stood still"
	lossyClass class = "loses packets"
)

var classes = []class{reaches, cutOff, stoodStill, lossyClass}

// trouble is why a host may not learn of a verdict.
type trouble string

const (
	noStore trouble = "no store"
	stopped trouble = "stopped"
	lossy   trouble = "lossy"
)

// stretch is a time in which something is wrong with a host; a zero To: until now.
type stretch struct {
	Host     string    `json:"host"`
	Trouble  trouble   `json:"trouble"`
	From, To time.Time `json:"-"`
}

// overlaps reports whether the stretch has a part of a time.
func (s *stretch) overlaps(from, to time.Time) bool {
	return s.From.Before(to) && (s.To.IsZero() || s.To.After(from))
}

// activity is how long one loser and the winners were both at work.
type activity struct {
	Member  string  `json:"member"`
	Class   class   `json:"class"`
	Seconds float64 `json:"seconds"`
	Verdict uint64  `json:"verdict"`
	Reason  string  `json:"reason"`
}

// classify tells the classes apart. What stood still is measured from when it went on: before, it did
// nothing.
func classify(a cluster.Active, stretches []stretch) activity {
	out := activity{Member: a.Member, Class: reaches, Seconds: a.For.Seconds(), Verdict: a.Verdict,
		Reason: a.Reason}
	written := a.At.Add(-a.For)
	for _, s := range stretches {
		if s.Host != a.Member || !s.overlaps(written, a.At) {
			continue
		}
		switch s.Trouble {
		case stopped:
			out.Class = stoodStill
			if !s.To.IsZero() && s.To.After(written) {
				out.Seconds = max(a.At.Sub(s.To), 0).Seconds()
			}
			return out
		case lossy:
			out.Class = lossyClass
		case noStore:
			if out.Class == reaches {
				out.Class = cutOff
			}
		}
	}
	return out
}

// change is a moment at which a member begins or ceases to work.
type change struct {
	at     time.Time
	host   string
	does   func(*worker)
	settle bool // it counts for the resolution
}

// worker is what the hooks and the faults say of one member.
type worker struct{ suspended, stopped, gone bool }

func (w *worker) works() bool { return !w.suspended && !w.stopped && !w.gone }

// timeline is what happened to the members at the cut.
type timeline struct {
	cut     time.Time
	changes []change
}

func (t *timeline) add(at time.Time, host string, settle bool, does func(*worker)) {
	if at.After(t.cut) {
		t.changes = append(t.changes, change{at, host, does, settle})
	}
}

// hooks adds what the hooks of one incarnation wrote.
func (t *timeline) hooks(host, incarnation string, hooks []cluster.Hook) {
	for _, h := range hooks {
		if h.Incarnation != incarnation {
			continue
		}
		switch h.Event {
		case "suspend":
			t.add(h.At, host, false, func(w *worker) { w.suspended = true })
		case "resume":
			t.add(h.At, host, true, func(w *worker) { w.suspended = false })
		case "down":
			t.add(h.At, host, true, func(w *worker) { w.gone = true })
		}
	}
}

// stands adds when a host stood still.
func (t *timeline) stands(stretches []stretch) {
	for _, s := range stretches {
		if s.Trouble != stopped {
			continue
		}
		t.add(s.From, s.Host, false, func(w *worker) { w.stopped = true })
		if !s.To.IsZero() {
			t.add(s.To, s.Host, false, func(w *worker) { w.stopped = false })
		}
	}
}

// resolved is how long after the last cut the last member went down or on; zero: no member ever stopped
// working. Members for which skip is true do not count.
func (t *timeline) resolved(last time.Time, skip func(host string) bool) time.Duration {
	var end time.Duration
	for _, c := range t.changes {
		if c.settle && !skip(c.host) {
			end = max(end, c.at.Sub(last))
		}
	}
	return end
}

// nobody is for how long, up to end after the cut, no member worked.
func (t *timeline) nobody(end time.Duration) (total time.Duration) {
	all := make(map[string]*worker)
	for _, h := range hosts {
		all[h] = new(worker)
	}
	changes := slices.SortedStableFunc(slices.Values(t.changes), func(a, b change) int {
		return a.at.Compare(b.at)
	})
	stop := t.cut.Add(end)
	since, idle := t.cut, false
	for _, c := range changes {
		at := c.at
		if at.After(stop) {
			at = stop
		}
		if idle {
			total += at.Sub(since)
		}
		since = at
		c.does(all[c.host])
		idle = true
		for _, w := range all {
			idle = idle && !w.works()
		}
	}
	return total
}
