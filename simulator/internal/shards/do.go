package shards

import (
	"fmt"

	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

// Do lets a move happen.
func (w *walker) Do(s *state, mv walk.Move) {
	switch mv.Kind {
	case walk.Waits:
		w.wait(s, w.Pass(s))
	case walk.Delivers, walk.Copies, walk.Delays, walk.Drops:
		if l, delivered := s.Mail.Do(mv, &s.Cluster); delivered {
			w.deliver(s, l)
			w.flush(s)
		}
	case grants, expires, loses, doubts, strays, goes:
		w.doLease(s, mv)
	case ends:
		i, n := member(mv)
		s.Budget.Ends--
		r := &s.hosts[i].runs[n]
		r.running, r.stopping = false, false
		w.step(s, i, slot.RunEnded{Shard: n, Run: r.number, Rest: w.Host.HandOverRetryInterval})
	case changes:
		s.changes--
		w.appoint(s, int(mv.At))
	case wants:
		i, n := member(mv)
		s.whims--
		s.wishes[n] = int8(i)
		w.lookChief(s, 0)
	case appoints:
		w.appoint(s, int(mv.At))
	case retires:
		s.chiefs[1] = chief{at: nobody}
	default:
		s.Cluster.Do(mv, passenger{w, s})
	}
	w.check(s)
}

func (w *walker) doLease(s *state, mv walk.Move) {
	i, n := member(mv)
	l := &s.leases[n]
	r := &s.hosts[i].runs[n]
	switch mv.Kind {
	case grants:
		l.token++
		l.holder, r.waits, r.granted = int8(i), false, l.token
		s.Mail.Post(toSelf(i, walk.Within, own(leaseAnswer, n, r.attempt, l.token)))
	case doubts:
		s.Budget.Doubts--
		r.waits = false
		s.Mail.Post(toSelf(i, walk.Within, own(leaseUnknown, n, r.attempt, 0)))
	case strays:
		s.strays--
		l.token++
		l.holder = stranger
	case goes:
		l.holder = nobody
	case expires, loses:
		i = int(l.holder)
		r = &s.hosts[i].runs[n]
		l.holder = nobody
		if mv.Kind == loses {
			s.Budget.Losses--
		}
		if s.Members[i].Up {
			s.Mail.Post(toSelf(i, walk.Within, own(leaseLost, n, r.attempt, 0)))
		}
	}
}

// check looks for two active runs of a shard, and for those of members that know that they are down.
func (w *walker) check(s *state) {
	for n := range w.Shards {
		first := nobody
		for i := range w.Members {
			if r := &s.hosts[i].runs[n]; s.Members[i].Told && r.running && !r.stopping {
				w.search.Broken(s, "A", fmt.Sprintf("%s goes on with shard %d although it knows that it is down", name(i), n))
			}
			if !w.active(s, i, n) {
				continue
			}
			if first != nobody {
				w.search.Broken(s, "A", fmt.Sprintf("shard %d is active on %s and %s at once", n, name(first), name(i)))
			}
			first = i
		}
	}
}

// active reports whether a run of a member is active and would find so itself.
func (w *walker) active(s *state, i, shard int) bool {
	r := &s.hosts[i].runs[shard]
	if !s.Live(i) || !r.running || r.stopping {
		return false
	}
	if w.UseLease {
		return int(s.leases[shard].holder) == i && r.token == s.leases[shard].token
	}
	until, ok := s.hosts[i].m.Until()
	return ok && s.Now < until
}
