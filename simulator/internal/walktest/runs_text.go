package walktest

import (
	"fmt"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
)

// say tells what an effect is, while the way to a violation is told.
func (w *Walker[M, S]) say(i int, e slot.Effect) {
	switch e := e.(type) {
	case slot.Start:
		w.Search.Tell("%s STARTS shard %d, run %d, token %s", Name(i), e.Shard, e.Run, Number(e.Token))
	case slot.Stop:
		w.Search.Tell("%s stops shard %d: %s", Name(i), e.Shard, e.Why)
	case slot.AcquireLease:
		w.Search.Tell("%s asks for the lease of shard %d", Name(i), e.Shard)
	case slot.ReleaseLease:
		w.Search.Tell("%s gives the lease of shard %d back", Name(i), e.Shard)
	default:
		w.own.Say(i, e)
	}
}

// Describe says what a move is, in a line.
func (w *Walker[M, S]) Describe(s *S, mv Move) string {
	x := w.own.Part(s)
	i, n := Of(mv)
	switch mv.Kind {
	case Delivers, Copies, Delays, Drops:
		l := x.Packets.At(int(mv.At))
		return l.Describe(mv, w.text(l))
	case ends:
		return fmt.Sprintf("the run of shard %d on %s ends by itself", n, Name(i))
	case endsForGood:
		return fmt.Sprintf("the run of shard %d on %s ends by itself, for good", n, Name(i))
	case grants:
		return fmt.Sprintf("%s is GRANTED the lease of shard %d", Name(i), n)
	case expires:
		return fmt.Sprintf("the lease of shard %d RUNS OUT, which %s holds", n, Name(int(x.Leases[n].Holder)))
	case loses:
		return fmt.Sprintf("the lease of shard %d is LOST, which %s holds", n, Name(int(x.Leases[n].Holder)))
	case doubts:
		return fmt.Sprintf("the store of shard %d gives %s no answer", n, Name(i))
	case strangerTakes:
		return fmt.Sprintf("a STRANGER takes the lease of shard %d", n)
	case strangerReleases:
		return fmt.Sprintf("the stranger gives the lease of shard %d back", n)
	}
	if mv.Kind >= Own {
		return w.own.DescribeMore(s, mv)
	}
	return x.Cluster.Describe(mv)
}

// text says what is in a packet.
func (w *Walker[M, S]) text(l *Packet[Body[M]]) string {
	switch b := &l.Body; b.Kind {
	case leaseAnswer:
		return fmt.Sprintf("the lease of shard %d is granted, token %d", b.Shard, b.Token)
	case leaseUnknown:
		return fmt.Sprintf("nobody knows about the lease of shard %d", b.Shard)
	case leaseLost:
		return fmt.Sprintf("the lease of shard %d is lost", b.Shard)
	case leaseReleased:
		return fmt.Sprintf("the lease of shard %d is given back", b.Shard)
	case runEnded:
		return fmt.Sprintf("run %d of shard %d has ended", b.Number, b.Shard)
	default:
		return w.own.Text(l)
	}
}

// Number writes a token, or the number of an order, in two parts where it has them.
func Number(n uint64) string {
	if t := message.TermOf(n); t > 0 {
		return fmt.Sprintf("%d.%d", t, n&message.MaxCounter)
	}
	return fmt.Sprint(n)
}
