package world

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// bridge works out anew whether two processes that do not reach each other directly have both noticed, while others can reach
// both. Such a pair is unreachable for everybody who hears of it, which is everybody who can reach it at all.
func (w *World) bridge(a, b *process) {
	if a == b || !w.opts.Network.Probes {
		return
	}
	x, y := a.peer(b), b.peer(a)
	i, j := a.node.index, b.node.index
	is := x.known && x.missed && y.known && y.missed && a.alive() && b.alive() && w.net.connected(i, j) &&
		(x.bridged || !w.net.direct(i, j)) // once noticed it lasts until probes work again
	if is == x.bridged {
		return
	}
	x.bridged, y.bridged = is, is
	by := -1
	if is {
		by = 1
	}
	for _, s := range [...]*process{a, b} {
		before := s.bridges > 0
		if s.bridges += by; s.bridges > 0 != before {
			w.noticed(s)
		}
	}
}

// hearsay is what the members of one component of the network report, shared by all of them.
type hearsay struct {
	version uint64 // changes whenever somebody reports something else
	built   uint64 // the version of reports
	reports []sbr.Report
}

// reported notes that what x reports has changed, or whether anybody hears it.
func (w *World) reported(x *process) {
	if w.opts.Network.Probes {
		w.versions++
		w.hearsayOf(x).version = w.versions
		w.spread()
	}
}

// Reports spread by gossip: within spreadLeast, and spreadEach for each member.
const (
	spreadLeast = 100 * time.Millisecond
	spreadEach  = 500 * time.Microsecond
)

// spread lets everybody hear of what has changed, and of whatever else changes until then.
func (w *World) spread() {
	if w.spreading {
		return
	}
	w.spreading = true
	w.after(spreadLeast+time.Duration(len(w.procs))*spreadEach, nil, func() {
		w.spreading = false
		for _, p := range w.procs {
			p.hear()
		}
	})
}

// hearsayOf is what the process hears.
func (w *World) hearsayOf(p *process) *hearsay {
	part := w.net.component(p.node.index)
	for len(w.hearsay) <= part {
		w.hearsay = append(w.hearsay, hearsay{version: w.versions})
	}
	return &w.hearsay[part]
}

// unheard forgets all reports, because who hears whom has changed.
func (w *World) unheard() {
	w.versions++
	for i := range w.hearsay {
		w.hearsay[i] = hearsay{version: w.versions}
	}
	if w.opts.Network.Probes {
		w.spread()
	}
}

// hear hands the process the reports that have spread to it, if they are news.
func (p *process) hear() {
	if !p.w.opts.Network.Probes || !p.attends() {
		return
	}
	h := p.w.hearsayOf(p)
	if p.heard == h.version {
		return
	}
	p.heard = h.version
	if h.built != h.version {
		h.built = h.version
		if now := p.w.collect(p.w.net.component(p.node.index)); !slices.Equal(now, h.reports) {
			h.reports = now
		}
	}
	if slices.Equal(p.seen, h.reports) {
		return
	}
	p.seen = h.reports
	p.take(sbr.Observations{Reports: p.seen}, p.clock())
	p.plan()
}

// collect lists who of a component misses whom, in the order of the processes.
func (w *World) collect(part int) []sbr.Report {
	n := 0
	for _, x := range w.procs {
		if x.misses > 0 && x.alive() && w.net.component(x.node.index) == part {
			n += x.misses
		}
	}
	if n == 0 {
		return nil
	}
	all := make([]sbr.Report, 0, n)
	for _, x := range w.procs {
		if x.misses == 0 || !x.alive() || w.net.component(x.node.index) != part {
			continue
		}
		others := x.w.procs
		for i := range x.peers {
			if x.peers[i].missed {
				all = append(all, sbr.Report{Observer: x.id, Subject: others[i].id})
			}
		}
	}
	return all
}
