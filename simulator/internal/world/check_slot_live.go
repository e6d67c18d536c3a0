package world

import (
	"time"

	core "github.com/serf-sbr/serf-sbr/internal/slot"
)

// disturb notes that something happens that concerns the slots, and none of the views.
func (w *World) disturb() {
	for _, s := range w.slots {
		s.disturbed = w.now
	}
}

// bound is how long after the last change it may take until the slot runs again: the margin, the silence of
// the lease's holder, the tries that get lost, and the end of the runs that have to end.
func (s *slot) bound() time.Duration {
	const slack, tries, lossy, moreTries = 10 * time.Second, 3, 0.01, 60
	o := &s.w.opts
	n := s.NumberOfRetries + tries
	if o.Network.Loss > lossy {
		n += moreTries
	}
	d := s.Margin + time.Duration(n)*(s.HandOverRetryInterval+2*(o.Network.Latency+o.Network.Jitter)) +
		2*s.StopTakes + o.Resolver.SettleAfter + slack
	if s.UseLease {
		d += o.Store.HeartbeatTimeout + 3*(s.LeaseRetryInterval+o.Store.OperationTimeout)
	}
	return d / 8 * 9 // clocks may run slow
}

// lives is promise X4: once nothing has changed for the bound, the cluster is whole, and its oldest candidate
// reaches the store, the slot runs there, and nowhere else.
func (s *slot) lives() {
	w := s.w
	if w.now-max(w.moved, s.disturbed) < s.bound() || !w.Settled() || !w.acquainted() {
		return
	}
	first := s.first()
	if first != nil && first.p.node.fault != (StoreFault{}) && s.UseLease {
		return
	}
	for _, r := range s.live {
		if r.executor.p.paused {
			continue // a run that has to end does so once its process runs again
		}
		if first == nil || r.executor != &first.executors[0] {
			s.broken(4, "%s runs on %s, whose turn it is not, %v after the last change", s, r.executor.p.id, s.bound())
		}
	}
	if first == nil {
		return
	}
	r := first.executors[0].run
	if phase := first.m.Phase(); phase != core.Resting && (r == nil || r.asked || !r.trusted()) {
		s.broken(4, "%s does not run on %s, whose turn it is, %v after the last change: it is %s, and waits for %v",
			s, first.p.id, s.bound(), phase.String(), first.m.Status().Asked)
	}
}

// first is the place of the oldest member that would run the slot; nil if there is none.
func (s *slot) first() (first *slotMember) {
	for _, p := range s.w.up() {
		if t := p.slotMember(s); t != nil && !t.m.Status().Resigned &&
			(first == nil || p.self.Born < first.p.self.Born) {
			first = t
		}
	}
	return first
}

// acquainted reports whether all members that are up know each other as full members, and messages get from
// each to each: without own probes nobody finds out that a link works one way, and a slot waits for its answer.
func (w *World) acquainted() bool {
	up := w.up()
	for _, p := range up {
		if p.resigned {
			return false
		}
		for _, q := range up {
			m, ok := p.r.Member(q.id)
			if !ok || m.Status != p.self.Status || p != q && !w.net.direct(p.node.index, q.node.index) {
				return false
			}
		}
	}
	return true
}

// slotsLive looks at the end.
type slotsLive struct{ unchecked }

func (slotsLive) rested(w *World) {
	for _, s := range w.slots {
		s.lives()
	}
	for _, s := range w.shards {
		s.lives()
	}
}
