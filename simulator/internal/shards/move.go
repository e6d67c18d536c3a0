package shards

import (
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
	strays
	goes
	appoints
	changes
	retires
	wants
)

func at(i, shard int) uint8 { return uint8(shard*walk.MaxMembers + i) }

func member(mv walk.Move) (i, shard int) {
	return int(mv.At) % walk.MaxMembers, int(mv.At) / walk.MaxMembers
}

// passenger is what runs on the members in a state.
type passenger struct {
	w *walker
	s *state
}

// Duties are what happens before time passes.
func (p passenger) Duties(to []walk.Move) []walk.Move {
	w, s := p.w, p.s
	to = s.Duties(to, func(i int) bool { return s.hosts[i].m.Finished() })
	for n := range w.Shards {
		for i := range w.Members {
			if s.Live(i) && s.hosts[i].runs[n].waits && s.leases[n].holder == nobody {
				to = append(to, walk.Move{Kind: grants, At: at(i, n)})
			}
		}
	}
	if c := &s.chiefs[1]; c.m != nil && s.Live(int(c.at)) {
		to = append(to, walk.Move{Kind: retires})
	}
	if i := w.successor(s); i != nobody && w.vacant(s, i) {
		to = append(to, walk.Move{Kind: appoints, At: uint8(i)})
	}
	return to
}

// Lapses are leases that run out, and strangers that give one back.
func (p passenger) Lapses(to []walk.Move) []walk.Move {
	w, s := p.w, p.s
	for n := range w.Shards {
		switch h := int(s.leases[n].holder); {
		case h == nobody:
		case h == stranger:
			to = append(to, walk.Move{Kind: goes, At: at(0, n)})
		case !s.Members[h].Up || s.Members[h].Paused:
			to = append(to, walk.Move{Kind: expires, At: at(0, n)})
		}
	}
	return to
}

// Faults are what may happen as long as there is a budget.
func (p passenger) Faults(to []walk.Move) []walk.Move {
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
		if s.strays > 0 && h == nobody {
			to = append(to, walk.Move{Kind: strays, At: at(0, n)})
		}
	}
	return w.wanting(w.changing(to, s), s)
}

// Deadlines are those of the machines, of coordinators that are not sure of their place, and of the next one.
func (p passenger) Deadlines(to []time.Duration) []time.Duration {
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
	for k := range s.chiefs {
		if c := &s.chiefs[k]; c.m != nil && s.Live(int(c.at)) {
			note(c.m.NextDeadline())
			note(s.Members[c.at].Sure+w.Host.Trust, !w.UseLease)
		}
	}
	if at := int(s.chiefs[0].at); at != nobody && s.Losers.Has(at) {
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
	for k := range s.chiefs {
		w.tickChief(s, k)
	}
}

func (p passenger) Shown(i int) {
	p.s.hosts[i].peers = nil
	p.w.look(p.s, i)
}

func (p passenger) Everyone() {
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
func (p passenger) Resumed(i int) {
	s := p.s
	p.w.check(s) // its runs may go on before its manager has looked around
	var lost []body
	s.Mail.Drop(func(l *letter) bool {
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
func (p passenger) Ended(i int) {
	for n := range p.s.hosts[i].runs {
		r := &p.s.hosts[i].runs[n]
		r.running, r.stopping, r.waits = false, false, false
	}
	p.w.dismiss(p.s, i, p.s.Members[i].Left)
	p.s.Mail.End(i)
}

func (p passenger) Split() { p.s.Mail.Split(p.s.Cut) }

func (p passenger) Downed(i int) {
	p.w.dismiss(p.s, i, false)
	p.w.step(p.s, i, slot.Downed{Why: "a verdict leaves it out"})
}

// Returned has a machine that remembers what the one before knew. What that one asked is not answered any more.
func (p passenger) Returned(i int) {
	h := &p.s.hosts[i]
	cfg := p.w.Options.host(i)
	cfg.Known, cfg.Gone = h.m.Known(), h.m.Gone()
	*h = hosted{m: newHost(cfg, p.s.Now)}
	p.s.Mail.Drop(func(l *letter) bool { return int(l.To) == i && l.Body.kind != question && l.Body.term == 0 })
}

func newHost(c host.Config, now time.Duration) *host.Machine {
	m, err := host.New(c, now)
	if err != nil {
		panic(err) // Validate has looked at it
	}
	return m
}

func (p passenger) Resigned(i int) { p.w.step(p.s, i, slot.Resign{Patience: p.w.patience()}) }
