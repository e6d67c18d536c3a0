package downing

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Departure is a member that was downed, or is gone.
type Departure struct {
	ID sbr.ID
	// Serves are the topics that it offered when it was last seen.
	Serves []string
	// At is when that was noticed here, with a monotonic reading.
	At time.Time
}

// Departures are remembered so that what is opened later waits for the margins that it would have begun: for an hour, and the newest thousand.
const (
	departedFor   = time.Hour
	departedCount = 1000
)

// departures adds to those that are known whoever is down or missing in next and was neither in last, and takes out who is back.
func departures(known []Departure, last, next []Peer, now time.Time) []Departure {
	is := make(map[sbr.ID]*Peer, len(next))
	for i := range next {
		is[next[i].ID] = &next[i]
	}
	out := func(p *Peer) bool { return p == nil || p.Status == sbr.Down }
	list := slices.DeleteFunc(slices.Clone(known), func(d Departure) bool { return !out(is[d.ID]) || now.Sub(d.At) > departedFor })
	was := make(map[sbr.ID]bool, len(last))
	for i := range last {
		p := &last[i]
		was[p.ID] = true
		if !out(p) && out(is[p.ID]) {
			list = append(list, Departure{ID: p.ID, Serves: p.Serves, At: now})
		}
	}
	for i := range next {
		if p := &next[i]; !was[p.ID] && out(p) && !slices.ContainsFunc(list, func(d Departure) bool { return d.ID == p.ID }) {
			list = append(list, Departure{ID: p.ID, Serves: p.Serves, At: now})
		}
	}
	return list[max(0, len(list)-departedCount):]
}
