package walktest

import (
	"fmt"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Place is where a Move of a member and what runs on it says them, Of what it says.
func Place(i, shard int) uint8 { return uint8(shard*MaxMembers + i) }

// Of returns the member and which one runs.
func Of(mv Move) (i, shard int) { return int(mv.At) % MaxMembers, int(mv.At) / MaxMembers }

// duties are what happens before time passes.
func (w *Walker[M, S]) duties(to []Move, s *S) []Move {
	x := w.own.Part(s)
	to = x.Duties(to, func(i int) bool { return w.own.Machine(s, i).Finished() })
	for n := range w.Shards {
		for i := range w.Members {
			if x.Live(i) && x.Runs[i][n].Waits && x.Leases[n].Holder == Nobody {
				to = append(to, Move{Kind: grants, At: Place(i, n)})
			}
		}
	}
	return w.own.MoreDuties(to, s)
}

// lapses are leases that run out, and strangers that give one back.
func (w *Walker[M, S]) lapses(to []Move, s *S) []Move {
	x := w.own.Part(s)
	for n := range w.Shards {
		switch h := int(x.Leases[n].Holder); {
		case h == Nobody:
		case h == Stranger:
			to = append(to, Move{Kind: strangerReleases, At: Place(0, n)})
		case !x.Members[h].Up || x.Members[h].Paused:
			to = append(to, Move{Kind: expires, At: Place(0, n)})
		}
	}
	return to
}

// faults are what may happen as long as there is a budget.
func (w *Walker[M, S]) faults(to []Move, s *S) []Move {
	x := w.own.Part(s)
	to = x.Faults(to)
	for n := range w.Shards {
		for i := range w.Members {
			r := &x.Runs[i][n]
			if !x.Live(i) {
				continue
			}
			if x.Budget.Ends > 0 && r.Running && !r.Stopping {
				to = append(to, Move{Kind: ends, At: Place(i, n)})
				if w.MayEnd {
					to = append(to, Move{Kind: endsForGood, At: Place(i, n)})
				}
			}
			if x.Budget.Doubts > 0 && r.Waits {
				to = append(to, Move{Kind: doubts, At: Place(i, n)})
			}
		}
		h := int(x.Leases[n].Holder)
		if x.Budget.Losses > 0 && h >= 0 && h != Stranger && x.Live(h) {
			to = append(to, Move{Kind: loses, At: Place(0, n)})
		}
		if x.Budget.Strangers > 0 && h == Nobody {
			to = append(to, Move{Kind: strangerTakes, At: Place(0, n)})
		}
	}
	return w.own.MoreFaults(to, s)
}

// deadlines are those of the machines, as far as the horizon.
func (w *Walker[M, S]) deadlines(s *S) []time.Duration {
	x, to := w.own.Part(s), make([]time.Duration, 0, 16)
	note := func(at time.Duration, ok bool) {
		if ok && (w.Canon.Horizon == 0 || at < x.Now+w.Canon.Horizon) {
			to = append(to, at)
		}
	}
	for i := range w.Members {
		if x.Live(i) {
			note(w.own.Machine(s, i).NextDeadline())
		}
	}
	w.own.MoreDeadlines(note, s)
	return to
}

// on is a walker in a state: what the moves of the cluster mean for what runs there.
type on[M, S any] struct {
	w *Walker[M, S]
	s *S
}

func (p on[M, S]) Shown(i int) {
	p.w.own.Part(p.s).peers[i] = nil
	p.w.own.Look(p.s, i)
}

func (p on[M, S]) Everyone() {
	x := p.w.own.Part(p.s)
	for i := range p.w.Members {
		if x.peers[i] = nil; x.Members[i].Closed {
			p.w.own.Dismiss(p.s, i)
		}
	}
	for i := range p.w.Members {
		if x.Live(i) {
			p.w.own.Look(p.s, i)
		}
	}
}

func (p on[M, S]) Resumed(i int) {
	p.w.check(p.s) // its runs may go on before its manager has looked around
	p.w.own.Resumes(p.s, i)
	p.w.own.Look(p.s, i)
}

// Ended drops what was under way to a member that is gone, and what ran there.
func (p on[M, S]) Ended(i int) {
	x := p.w.own.Part(p.s)
	for n := range x.Runs[i] {
		r := &x.Runs[i][n]
		r.Running, r.Stopping, r.Waits = false, false, false
	}
	p.w.own.Dismiss(p.s, i)
	x.Packets.End(i)
}

func (p on[M, S]) Split() {
	x := p.w.own.Part(p.s)
	x.Packets.Split(x.Cut)
}

func (p on[M, S]) Downed(i int) {
	p.w.own.Dismiss(p.s, i)
	p.w.Step(p.s, i, slot.Downed{Why: "a verdict leaves it out"})
}

// Returned has a machine that goes on from the previous one, whose questions are not answered any more.
func (p on[M, S]) Returned(i int) {
	x := p.w.own.Part(p.s)
	p.w.own.Reopen(p.s, i)
	x.Runs[i], x.peers[i] = [MaxShards]Run{}, nil
	x.Packets.Drop(func(l *Packet[Body[M]]) bool {
		return int(l.To) == i && l.Body.Kind != Question && l.Body.Term == 0
	})
}

func (p on[M, S]) Resigned(i int) { p.w.Step(p.s, i, slot.Resign{Patience: p.w.Patience}) }

// Do lets a move happen.
func (w *Walker[M, S]) Do(s *S, mv Move) {
	x := w.own.Part(s)
	switch k := mv.Kind; {
	case k == Waits:
		w.wait(s, w.own.Pass(s))
	case k <= Drops:
		if l, delivered := x.Packets.Do(mv, &x.Cluster); delivered {
			w.deliver(s, l)
			w.Flush(s)
		}
	case k >= Own:
		w.own.DoMore(s, mv)
	case k >= grants:
		w.doLease(s, mv)
	case k >= ends:
		i, n := Of(mv)
		x.Budget.Ends--
		r := &x.Runs[i][n]
		r.Running, r.Stopping = false, false
		w.Step(s, i, slot.RunEnded{Shard: n, Run: r.Number, Again: k == ends, Rest: w.HandOverRetryInterval})
	default:
		x.Cluster.Do(mv, on[M, S]{w, s})
	}
	w.check(s)
}

func (w *Walker[M, S]) doLease(s *S, mv Move) {
	x := w.own.Part(s)
	i, n := Of(mv)
	l, r := &x.Leases[n], &x.Runs[i][n]
	switch mv.Kind {
	case grants:
		l.Token++
		l.Holder, r.Waits, r.Granted = int8(i), false, l.Token
		x.toSelf(i, Within, leaseAnswer, n, r.Attempt, l.Token)
	case doubts:
		x.Budget.Doubts--
		r.Waits = false
		x.toSelf(i, Within, leaseUnknown, n, r.Attempt, 0)
	case strangerTakes:
		x.Budget.Strangers--
		l.Token++
		l.Holder = Stranger
	case strangerReleases:
		l.Holder = Nobody
	case expires, loses:
		i = int(l.Holder)
		attempt := x.Runs[i][n].Attempt
		l.Holder = Nobody
		if mv.Kind == loses {
			x.Budget.Losses--
		}
		switch {
		case mv.Kind == loses && w.LossAtOnce:
			w.own.Lost(s, i, &Body[M]{Shard: int8(n), Number: attempt})
		case x.Members[i].Up:
			x.toSelf(i, Within, leaseLost, n, attempt, 0)
		}
	}
}

// wait lets time pass.
func (w *Walker[M, S]) wait(s *S, by time.Duration) {
	x := w.own.Part(s)
	x.Now += by
	for i := range w.Members {
		if !x.Live(i) {
			continue
		}
		w.own.Look(s, i)
		if at, ok := w.own.Machine(s, i).NextDeadline(); ok && x.Live(i) && at <= x.Now {
			w.Step(s, i, slot.Tick{})
			if at, ok := w.own.Machine(s, i).NextDeadline(); ok && at <= x.Now {
				w.Search.Broken(s, "D", fmt.Sprintf("a deadline of %s stands still", Name(i)))
			}
		}
	}
	w.own.Waited(s)
}

// check looks for two active runs of one thing, and for those of members that know that they are down.
func (w *Walker[M, S]) check(s *S) {
	x := w.own.Part(s)
	for n := range w.Shards {
		first := Nobody
		for i := range w.Members {
			if r := &x.Runs[i][n]; x.Members[i].Told && r.Running && !r.Stopping {
				w.Search.Broken(s, "A", fmt.Sprintf("%s goes on with shard %d although it knows that it is down",
					Name(i), n))
			}
			if !w.Active(s, i, n) {
				continue
			}
			if first != Nobody {
				w.Search.Broken(s, "A", fmt.Sprintf("shard %d is active on %s and %s at once", n, Name(first), Name(i)))
			}
			first = i
		}
	}
}

// Step lets an event happen to a member's machine and carries out what it wants.
func (w *Walker[M, S]) Step(s *S, i int, e slot.Event) {
	w.Carry(s, i, w.own.Changed(s, i).Step(w.own.Part(s).Now, e))
}

// Carry carries out effects.
func (w *Walker[M, S]) Carry(s *S, i int, effects []slot.Effect) {
	x := w.own.Part(s)
	for _, e := range slices.Clone(effects) {
		if w.Search.Telling() {
			w.say(i, e)
		}
		switch e := e.(type) {
		case slot.AcquireLease:
			r := &x.Runs[i][e.Shard]
			r.Attempt, r.Waits = e.Attempt, true
		case slot.ReleaseLease:
			x.Runs[i][e.Shard].Waits = false
			if l := &x.Leases[e.Shard]; int(l.Holder) == i {
				l.Holder = Nobody
			}
			x.toSelf(i, Within, leaseReleased, e.Shard, e.Attempt, 0)
		case slot.Start:
			w.start(s, i, e)
		case slot.Stop:
			x.Runs[i][e.Shard].Stopping = true
			x.toSelf(i, Ending, runEnded, e.Shard, e.Run, 0)
		default:
			w.own.CarryOut(s, i, e)
		}
	}
	if m := &x.Members[i]; m.Told && m.Up && w.own.Machine(s, i).Finished() {
		x.End(i, on[M, S]{w, s}) // it is down, and nothing of it runs
	}
	w.Flush(s)
}

func (w *Walker[M, S]) start(s *S, i int, e slot.Start) {
	x := w.own.Part(s)
	r, n := &x.Runs[i][e.Shard], e.Shard
	broken := func(format string, args ...any) {
		w.Search.Broken(s, "A", fmt.Sprintf("%s starts shard %d ", Name(i), n)+fmt.Sprintf(format, args...))
	}
	w.Search.Started()
	if r.Running {
		broken("while its run %d has not ended", r.Number)
	}
	if x.Members[i].Told {
		broken("although it knows that it is down")
	}
	if w.UseLease && e.Token != r.Granted {
		broken("without the lease")
	}
	for j := range w.Members {
		o := &x.Runs[j][n]
		if j != i && o.Running && (e.From == Name(j) && o.Token < e.Token || !w.UseLease && !x.Losers.Has(j)) {
			broken("before run %d of %s has ended", o.Number, Name(j))
		}
	}
	w.own.Starts(s, i, e)
	r.Number, r.Token, r.Running, r.Stopping = e.Run, e.Token, true, false
}

// AtOnce delivers a packet before anything else happens.
func (w *Walker[M, S]) AtOnce(l Packet[Body[M]]) { w.inside = append(w.inside, l) }

// Flush delivers what comes at once.
func (w *Walker[M, S]) Flush(s *S) {
	if w.flushing {
		return
	}
	w.flushing = true
	for len(w.inside) > 0 {
		l := w.inside[0]
		w.inside = w.inside[1:]
		if w.own.Part(s).Live(int(l.To)) {
			w.deliver(s, l)
		}
	}
	w.flushing = false
}

// deliver hands a packet over.
func (w *Walker[M, S]) deliver(s *S, l Packet[Body[M]]) {
	i, b, n := int(l.To), &l.Body, int(l.Body.Shard)
	switch b.Kind {
	case leaseAnswer:
		w.Step(s, i, slot.LeaseAnswer{Shard: n, Attempt: b.Number, Outcome: sbr.Granted, Token: b.Token})
	case leaseUnknown:
		w.Step(s, i, slot.LeaseAnswer{Shard: n, Attempt: b.Number, Why: "the store does not answer"})
	case leaseLost:
		w.own.Lost(s, i, b)
	case leaseReleased:
		w.Step(s, i, slot.LeaseReleased{Shard: n, Attempt: b.Number})
	case runEnded:
		r := &w.own.Part(s).Runs[i][n]
		r.Running, r.Stopping = false, false
		w.Step(s, i, slot.RunEnded{Shard: n, Run: b.Number})
	default:
		w.own.Deliver(s, l)
	}
}

// LossesOf takes away the losses of leases that a member has not heard of, and returns them.
func (x *Runs[M]) LossesOf(i int) (lost []Body[M]) {
	x.Packets.Drop(func(l *Packet[Body[M]]) bool {
		is := l.Body.Kind == leaseLost && int(l.To) == i
		if is {
			lost = append(lost, l.Body)
		}
		return is
	})
	return lost
}

// GrantFirst delivers the grant of a lease that is lost, if it has not come yet.
func (w *Walker[M, S]) GrantFirst(s *S, i int, lost *Body[M]) {
	w.own.Part(s).Packets.Drop(func(l *Packet[Body[M]]) bool {
		b := &l.Body
		granted := int(l.To) == i && b.Kind == leaseAnswer && b.Shard == lost.Shard && b.Number == lost.Number
		if granted {
			w.AtOnce(*l)
		}
		return granted
	})
	w.Flush(s)
}
