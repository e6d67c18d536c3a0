package strategies_test

import (
	"maps"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// The second half of the twin: sbr.Decide and Decision.Reversed.

type twinDecision struct {
	answer
	final sbr.Kind
	down  ids
}

func twinDecide(s sbr.Strategy, w world, threshold float64) twinDecision {
	a := twinAnswer(s, w)
	d := twinDecision{answer: a, final: a.kind}
	switch a.kind {
	case sbr.DownIndirectlyConnected, sbr.AcquireLeaseAndDownIndirectlyConnected:
		extra, ok := twinExtra(s, w)
		if !ok {
			d.final, d.down = sbr.DownAll, w.downable()
			return d
		}
		d.down = w.downable().intersect(w.indirect().union(extra))
		return twinSafeguard(d, w, threshold)
	default:
		d.down = twinNodesToDown(a.kind, w)
		return d
	}
}

func twinNodesToDown(k sbr.Kind, w world) ids {
	switch k {
	case sbr.DownUnreachable, sbr.AcquireLeaseAndDownUnreachable:
		return w.downable().intersect(w.unreachable)
	case sbr.DownReachable:
		return w.downable().minus(w.unreachable)
	case sbr.DownAll:
		return w.downable()
	case sbr.ReverseDownIndirectlyConnected:
		return w.downable().intersect(w.indirect()).union(w.downable().minus(w.unreachable))
	case sbr.None:
		return ids{}
	default:
		panic("not a decision about a clean cut")
	}
}

// twinExtra is the second pass of Akka and Pekko, with the pruning of akka.net#7141.
func twinExtra(s sbr.Strategy, w world) (extra ids, ok bool) {
	if len(w.unreachable.minus(w.indirect())) == 0 {
		return ids{}, true
	}
	rest := w
	rest.records = maps.Clone(w.records)
	everySubject := ids{}
	downable, crossed, seen := w.downable(), w.crossed(), w.throughSeen()
	for r := range w.records {
		everySubject[r.subject] = true
		dropped := !downable[r.observer] || !downable[r.subject] ||
			crossed[r.observer] && crossed[r.subject] ||
			seen[r.observer] && seen[r.subject] ||
			w.agreedGone(r.observer)
		if dropped {
			delete(rest.records, r)
		}
	}
	rest.unreachable = ids{}
	for r := range rest.records {
		rest.unreachable[r.subject] = true
	}
	// Ours: the reference knows of no unreachable member without a record.
	for id := range w.unreachable.intersect(w.downable()).minus(w.indirect()).minus(everySubject) {
		rest.unreachable[id] = true
	}
	a := twinAnswer(s, rest)
	if a.kind == sbr.DownIndirectlyConnected || a.kind == sbr.AcquireLeaseAndDownIndirectlyConnected {
		return nil, false
	}
	return twinNodesToDown(a.kind, rest), true
}

func (w world) agreedGone(observer sbr.ID) bool {
	if !w.unreachable[observer] {
		return false
	}
	some := false
	for id := range w.members {
		if w.unreachable[id] {
			continue
		}
		some = true
		if !w.records[record{id, observer}] {
			return false
		}
	}
	return some
}

func twinSafeguard(d twinDecision, w world, threshold float64) twinDecision {
	base := len(w.base(""))
	if threshold < 1 && base > 0 && len(d.down) > 0 && float64(len(d.down))/float64(base) >= threshold {
		d.final, d.down = sbr.DownAll, w.downable()
	}
	return d
}

func twinReversed(d twinDecision, w world, threshold float64) twinDecision {
	switch d.final {
	case sbr.AcquireLeaseAndDownUnreachable:
		d.final = sbr.DownReachable
		d.down = twinNodesToDown(d.final, w)
	case sbr.AcquireLeaseAndDownIndirectlyConnected:
		d.final = sbr.ReverseDownIndirectlyConnected
		d.down = twinNodesToDown(d.final, w)
		return twinSafeguard(d, w, threshold)
	}
	return d
}
