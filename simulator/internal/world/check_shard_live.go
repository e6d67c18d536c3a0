package world

import (
	"slices"
	"time"

	core "github.com/serf-sbr/serf-sbr/internal/slot"
)

// bound is how long after the last change it may take until all shards run again: that of the coordinator,
// and then a margin that others wait for, and what it takes until each shard has gone where it belongs.
func (s *shards) bound() time.Duration {
	return s.coordSlot.bound() + s.slots[0].bound()
}

// rested is how long it takes until nothing moves any more: shards that run well move one at a time.
func (s *shards) restsAfter() time.Duration {
	move := s.StopTakes + 3*s.HandOverRetryInterval
	if s.UseLease {
		move += s.LeaseRetryInterval + s.w.opts.Store.OperationTimeout
	}
	return s.bound() + time.Duration(2*s.Count)*move
}

// quiet is for how long nothing has changed that concerns the shards; zero where the cluster is not whole, or
// a member does not reach the store.
func (s *shards) quiet() time.Duration {
	w := s.w
	d := w.now - max(w.moved, s.coordSlot.disturbed)
	if d < s.bound() || !w.Settled() || !w.acquainted() {
		return 0
	}
	for _, p := range w.up() {
		t := p.shardHost(s)
		if t != nil && t.stage != hostOpen || s.UseLease && p.node.fault != (StoreFault{}) {
			return 0
		}
	}
	return d
}

// lives is promise Y4: once nothing has changed for the bound, and the cluster is whole and reaches the
// store, each shard that has not run for the bound breaks it; so does a shard that runs on a host which would
// not run it.
func (s *shards) lives() {
	quiet := s.quiet()
	if quiet == 0 {
		return
	}
	var open []*shardHost
	for _, p := range s.w.up() {
		if t := p.shardHost(s); t != nil && s.coordSlot.runsOn(p.node) && t.stage == hostOpen {
			open = append(open, t)
		}
	}
	for _, x := range s.slots {
		on := s.runner(x)
		switch {
		case len(open) == 0:
			if len(x.live) > 0 {
				x.broken(4, "%s runs on %s, which would not run it", x, x.live[0].executor.p.id)
			}
		case on == nil && s.w.now-x.endedAt() >= s.bound():
			x.broken(4, "%s has not run for %v, %v after the last change", x, s.w.now-x.endedAt(), quiet)
		case on != nil && !slices.Contains(open, on):
			x.broken(4, "%s runs on %s, which would not run it", x, on.p.id)
		}
	}
}

// runner is the shard host on which a shard runs, or rests between two runs; nil: on none.
func (s *shards) runner(x *slot) *shardHost {
	for _, p := range s.w.up() {
		t := p.shardHost(s)
		if t == nil || t.stage != hostOpen {
			continue
		}
		if r := t.executors[x.index].run; r != nil && !r.asked && r.trusted() {
			return t
		}
		if phase, _ := t.host.Shard(x.index); phase == core.Resting {
			return t
		}
	}
	return nil
}

// endedAt is when the last run of the slot ended.
func (s *slot) endedAt() (at time.Duration) {
	for _, r := range s.runs {
		at = max(at, r.endedAt)
	}
	return at
}

// moves is the other half of Y4, about a run that is about to start: nothing moves for ever. A run that
// follows a run that has ended by itself stays where it is: it is the last run, or starts by the same order.
func (s *shards) moves(r *run) {
	x := r.executor.slot
	for i, o := range x.runs {
		if o.executor == r.executor && (i == len(x.runs)-1 || o.token == r.token) {
			return
		}
	}
	if quiet := s.quiet(); quiet >= s.restsAfter() && s.w.opts.Network.Loss == 0 {
		x.broken(4, "%s moves to %s although nothing has changed for %v", x, r.executor.p.id, quiet)
	}
}
