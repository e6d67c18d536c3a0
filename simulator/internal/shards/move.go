package shards

import (
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/shards/host"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

// What can happen to shards and their coordinator, next to what happens to their cluster. At is a member and, times MaxMembers, a shard.
const (
	ends = walk.Own + iota
	grants
	expires
	loses
	doubts
	strangerTakes
	strangerReleases
	appoints
	changes
	retires
	wants
)

func at(i, shard int) uint8 { return uint8(shard*walk.MaxMembers + i) }

func member(mv walk.Move) (i, shard int) {
	return int(mv.At) % walk.MaxMembers, int(mv.At) / walk.MaxMembers
}

// application is what runs on the members in a state.
type application struct {
	w *walker
	s *state
}

// Duties are what happens before time passes.
func (p application) Duties(to []walk.Move) []walk.Move {
	w, s := p.w, p.s
	to = s.Duties(to, func(i int) bool { return s.hosts[i].m.Finished() })
	for n := range w.Shards {
		for i := range w.Members {
			if s.Live(i) && s.hosts[i].runs[n].waits && s.leases[n].holder == nobody {
				to = append(to, walk.Move{Kind: grants, At: at(i, n)})
			}
		}
	}
	if c := &s.coordinators[1]; c.m != nil && s.Live(int(c.at)) {
		to = append(to, walk.Move{Kind: retires})
	}
	if i := w.successor(s); i != nobody && w.vacant(s, i) {
		to = append(to, walk.Move{Kind: appoints, At: uint8(i)})
	}
	return to
}

// Lapses are leases that run out, and strangers that give one back.
func (p application) Lapses(to []walk.Move) []walk.Move {
	w, s := p.w, p.s
	for n := range w.Shards {
		switch h := int(s.leases[n].holder); {
		case h == nobody:
		case h == stranger:
			to = append(to, walk.Move{Kind: strangerReleases, At: at(0, n)})
		case !s.Members[h].Up || s.Members[h].Paused:
			to = append(to, walk.Move{Kind: expires, At: at(0, n)})
		}
	}
	return to
}

// Faults are what may happen as long as there is a budget.
func (p application) Faults(to []walk.Move) []walk.Move {
	w, s := p.w, p.s
	to = s.Faults(to)
	for n := range w.Shards {
		for i := range w.Members {
			r := &s.hosts[i].runs[n]
			if !s.Live(i) {
				continue
			}
			if s.Budget.Ends > 0 && r.running && !r.stopping {
				to = append(to, walk.Move{Kind: ends, At: at(i, n)})
			}
			if s.Budget.Doubts > 0 && r.waits {
				to = append(to, walk.Move{Kind: doubts, At: at(i, n)})
			}
		}
		h := int(s.leases[n].holder)
		if s.Budget.Losses > 0 && h >= 0 && h != stranger && s.Live(h) {
			to = append(to, walk.Move{Kind: loses, At: at(0, n)})
		}
		if s.strangers > 0 && h == nobody {
			to = append(to, walk.Move{Kind: strangerTakes, At: at(0, n)})
		}
	}
	return w.wanting(w.changing(to, s), s)
}

// Deadlines are those of the machines, of coordinators that are not sure of their place, and of the next one.
func (p application) Deadlines(to []time.Duration) []time.Duration {
	w, s := p.w, p.s
	note := func(at time.Duration, ok bool) {
		if ok && at < s.Now+horizon {
			to = append(to, at)
		}
	}
	for i := range w.Members {
		if s.Live(i) {
			note(s.hosts[i].m.NextDeadline())
		}
	}
	for k := range s.coordinators {
		if c := &s.coordinators[k]; c.m != nil && s.Live(int(c.at)) {
			note(c.m.NextDeadline())
			note(s.Members[c.at].Sure+w.Host.Trust, !w.UseLease)
		}
	}
	if at := int(s.coordinators[0].at); at != nobody && s.Losers.Has(at) {
		note(s.Decided+w.Host.Margin, true)
	}
	return to
}

// wait lets time pass.
func (w *walker) wait(s *state, by time.Duration) {
	s.Now += by
	for i := range w.Members {
		if !s.Live(i) {
			continue
		}
		w.look(s, i)
		if at, ok := s.hosts[i].m.NextDeadline(); ok && s.Live(i) && at <= s.Now {
			w.carry(s, i, s.host(i).Tick(s.Now))
			if at, ok := s.hosts[i].m.NextDeadline(); ok && at <= s.Now {
				w.search.Broken(s, "D", "the deadline of the host on "+string(name(i))+" stands still")
			}
		}
	}
	for k := range s.coordinators {
		w.tickCoordinator(s, k)
	}
}

func (p application) Shown(i int) {
	p.s.hosts[i].peers = nil
	p.w.look(p.s, i)
}

func (p application) Everyone() {
	for i := range p.w.Members {
		p.s.hosts[i].peers = nil
		if m := &p.s.Members[i]; m.Closed {
			p.w.dismiss(p.s, i, true)
		}
	}
	for i := range p.w.Members {
		if p.s.Live(i) {
			p.w.look(p.s, i)
		}
	}
}

// Resumed tells a member first which leases have run out meanwhile: its own clock says so.
func (p application) Resumed(i int) {
	s := p.s
	p.w.check(s) // its runs may go on before its manager has looked around
	var lost []body
	s.Packets.Drop(func(l *packet) bool {
		if l.Body.kind != leaseLost || int(l.To) != i {
			return false
		}
		lost = append(lost, l.Body)
		return true
	})
	for k := range lost {
		p.w.lose(s, i, &lost[k])
	}
	p.w.look(s, i)
}

// Ended drops what was under way to a member that is gone, and what ran there.
func (p application) Ended(i int) {
	for n := range p.s.hosts[i].runs {
		r := &p.s.hosts[i].runs[n]
		r.running, r.stopping, r.waits = false, false, false
	}
	p.w.dismiss(p.s, i, p.s.Members[i].Left)
	p.s.Packets.End(i)
}

func (p application) Split() { p.s.Packets.Split(p.s.Cut) }

func (p application) Downed(i int) {
	p.w.dismiss(p.s, i, false)
	p.w.step(p.s, i, slot.Downed{Why: "a verdict leaves it out"})
}

// Returned has a machine that remembers what the one before knew. What that one asked is not answered any more.
func (p application) Returned(i int) {
	h := &p.s.hosts[i]
	cfg := p.w.Options.host(i)
	cfg.Known, cfg.Gone = h.m.Known(), h.m.Departed
	*h = hosted{m: newHost(cfg, p.s.Now)}
	p.s.Packets.Drop(func(l *packet) bool { return int(l.To) == i && l.Body.kind != question && l.Body.term == 0 })
}

func newHost(c host.Config, now time.Duration) *host.Machine {
	m := host.New(c, now)
	return m
}

func (p application) Resigned(i int) { p.w.step(p.s, i, slot.Resign{Patience: p.w.patience()}) }

// Do lets a move happen.
func (w *walker) Do(s *state, mv walk.Move) {
	switch mv.Kind {
	case walk.Waits:
		w.wait(s, w.Pass(s))
	case walk.Delivers, walk.Copies, walk.Delays, walk.Drops:
		if l, delivered := s.Packets.Do(mv, &s.Cluster); delivered {
			w.deliver(s, l)
			w.flush(s)
		}
	case grants, expires, loses, doubts, strangerTakes, strangerReleases:
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
		w.lookCoordinator(s, 0)
	case appoints:
		w.appoint(s, int(mv.At))
	case retires:
		s.coordinators[1] = coordination{at: nobody}
	default:
		s.Cluster.Do(mv, application{w, s})
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
		s.Packets.Send(toSelf(i, walk.Within, own(leaseAnswer, n, r.attempt, l.token)))
	case doubts:
		s.Budget.Doubts--
		r.waits = false
		s.Packets.Send(toSelf(i, walk.Within, own(leaseUnknown, n, r.attempt, 0)))
	case strangerTakes:
		s.strangers--
		l.token++
		l.holder = stranger
	case strangerReleases:
		l.holder = nobody
	case expires, loses:
		i = int(l.holder)
		r = &s.hosts[i].runs[n]
		l.holder = nobody
		if mv.Kind == loses {
			s.Budget.Losses--
		}
		if s.Members[i].Up {
			s.Packets.Send(toSelf(i, walk.Within, own(leaseLost, n, r.attempt, 0)))
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
