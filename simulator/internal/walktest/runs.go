package walktest

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

const (
	// Nobody holds a lease.
	Nobody = -1
	// Stranger is a process out of the cluster that holds a lease.
	Stranger = MaxMembers
)

// Run is what a member does with one of the things that run.
type Run struct {
	Number, Token     uint64
	Running, Stopping bool
	// Attempt is the newest to get the lease, Granted the last token of the lease; Waits: for the lease.
	Attempt, Granted uint64
	Waits            bool
}

// Lease is that of one of the things that run.
type Lease struct {
	Holder int8 // Nobody, a member or the Stranger
	Token  uint64
}

// Runs is a cluster in which something runs, on one member each: what the states of models of it begin with.
// It is a value.
type Runs[M any] struct {
	Cluster
	Packets Packets[Body[M]]
	Runs    [MaxMembers][MaxShards]Run
	Leases  [MaxShards]Lease
	// peers are the views that were shown last, shared by states; nil: it has to be made anew.
	peers [MaxMembers][]slot.Peer
}

// Peers are how a member sees all that it knows.
func (x *Runs[M]) Peers(i int) []slot.Peer {
	if x.peers[i] == nil {
		x.peers[i] = x.View(i)
	}
	return x.peers[i]
}

// BodyKind says what a packet is.
type BodyKind uint8

// The kinds of packets. The last ones are a member's own.
const (
	Question BodyKind = iota
	Answer
	Unserved
	leaseAnswer
	leaseUnknown
	leaseLost
	leaseReleased
	runEnded
)

// Body is what is in a packet.
type Body[M any] struct {
	Kind BodyKind
	// Term is that of the coordinator that asks, or that is answered; 0: a member asks, or is answered.
	Term uint64
	Msg  M
	// Number is the attempt or the run, Token the lease's.
	Shard         int8
	Number, Token uint64
	// Key tells bodies with messages apart, where a model has written it down.
	Key string
}

// Own reports whether a member hears it from itself.
func (b *Body[M]) Own() bool { return b.Kind >= leaseAnswer }

// AppendNumbers appends all but the message, so that larger numbers come later, whatever their distance.
func (b *Body[M]) AppendNumbers(k []byte) []byte {
	k = append(k, byte(b.Kind), byte(b.Shard))
	for _, n := range [...]uint64{b.Term, b.Number, b.Token} {
		k = binary.BigEndian.AppendUint64(k, n)
	}
	return k
}

// Newest is the number of the newest run or attempt where one of a packet's is expected.
func (x *Runs[M]) Newest(l *Packet[Body[M]]) uint64 {
	r := &x.Runs[l.To][l.Body.Shard]
	if l.Body.Kind == runEnded {
		return r.Number
	}
	return r.Attempt
}

// toSelf sends a member something that it hears from itself.
func (x *Runs[M]) toSelf(i int, way Way, kind BodyKind, shard int, number, token uint64) {
	x.Packets.Send(Packet[Body[M]]{
		Way: way, From: int8(i), To: int8(i),
		Body: Body[M]{Kind: kind, Shard: int8(shard), Number: number, Token: token},
	})
}

// active reports whether a run of a member, which is on that machine, is active and would find so itself.
func (x *Runs[M]) active(i, shard int, m Machine) bool {
	r := &x.Runs[i][shard]
	if !x.Live(i) || !r.Running || r.Stopping {
		return false
	}
	if l := &x.Leases[shard]; x.UseLease {
		return int(l.Holder) == i && r.Token == l.Token
	}
	until, ok := m.Until()
	return ok && x.Now < until
}

// Machine runs things on one member.
type Machine interface {
	// Step hands it an event, and returns what it wants.
	Step(now time.Duration, e slot.Event) []slot.Effect
	NextDeadline() (at time.Duration, ok bool)
	// Until is the end of runs without a lease.
	Until() (at time.Duration, ok bool)
	Finished() bool
}

// Runner is a model of things that run on one member each: what is its own. Those below More have a default:
// nothing.
type Runner[M, S any] interface {
	Model[S]
	// Part is what the state has in common with others. Machine is that of a member, Changed a copy in its
	// place, which may be changed.
	Part(s *S) *Runs[M]
	Machine(s *S, i int) Machine
	Changed(s *S, i int) Machine
	// Look shows a member its view.
	Look(s *S, i int)
	// CarryOut carries out a question or an answer, Deliver hands one over.
	CarryOut(s *S, i int, e slot.Effect)
	Deliver(s *S, l Packet[Body[M]])
	// Starts looks at a run that is about to start: whether its token is larger than those before.
	Starts(s *S, i int, e slot.Start)
	// Lost tells a member that a lease is lost.
	Lost(s *S, i int, b *Body[M])
	// Reopen gives a member a new machine, in the place of its machine that is over.
	Reopen(s *S, i int)
	// Well reports whether all runs as it should.
	Well(s *S) bool
	// Key tells packets apart.
	Key(s *S) PacketKey[Body[M]]
	// Say tells what an effect is, Text what a question or an answer is.
	Say(i int, e slot.Effect)
	Text(l *Packet[Body[M]]) string

	// MoreDuties and MoreFaults append moves, and MoreDeadlines moments, of the model's own; DoMore lets such
	// a move happen, and DescribeMore says what it is. Waited follows time that has passed.
	MoreDuties(to []Move, s *S) []Move
	MoreFaults(to []Move, s *S) []Move
	MoreDeadlines(note func(at time.Duration, ok bool), s *S)
	DoMore(s *S, mv Move)
	DescribeMore(s *S, mv Move) string
	Waited(s *S)
	// Resumes comes before a member looks around after its pause, Dismiss says that nothing may coordinate on
	// it any more.
	Resumes(s *S, i int)
	Dismiss(s *S, i int)
}

// Walker is what models of things that run have in common: a Runner embeds it.
type Walker[M, S any] struct {
	Options
	Search *Search[S]
	Canon  Canon
	// Patience is that of a member whose manager is stopped.
	Patience time.Duration
	// LossAtOnce: a member hears at once that its lease is lost. MayEnd: a run that ends by itself may end
	// for good.
	LossAtOnce, MayEnd bool

	own Runner[M, S]
	// inside is what comes at once.
	inside   []Packet[Body[M]]
	flushing bool
}

// Init begins a walk of a model.
func (w *Walker[M, S]) Init(own Runner[M, S]) {
	w.Notice = w.Margin / 2
	w.own, w.Search = own, walk.NewSearch[S](own, w.Limit)
}

// MoreDuties and the methods below are those of a Runner that has nothing to add.
func (w *Walker[M, S]) MoreDuties(to []Move, _ *S) []Move { return to }

// MoreFaults adds no move.
func (w *Walker[M, S]) MoreFaults(to []Move, _ *S) []Move { return to }

// MoreDeadlines adds no deadline.
func (w *Walker[M, S]) MoreDeadlines(func(time.Duration, bool), *S) {}

// DoMore does nothing.
func (w *Walker[M, S]) DoMore(*S, Move) {}

// DescribeMore says nothing.
func (w *Walker[M, S]) DescribeMore(*S, Move) string { return "" }

// Waited does nothing.
func (w *Walker[M, S]) Waited(*S) {}

// Resumes does nothing.
func (w *Walker[M, S]) Resumes(*S, int) {}

// Dismiss does nothing.
func (w *Walker[M, S]) Dismiss(*S, int) {}

// Active reports whether a run of a member is active.
func (w *Walker[M, S]) Active(s *S, i, shard int) bool {
	return w.own.Part(s).active(i, shard, w.own.Machine(s, i))
}

// Copy makes to a copy of from: what they share is never changed in place.
func (w *Walker[M, S]) Copy(to, from *S) { *to = *from }

// Moves appends what can happen next, Waits last. It is complete: whatever is not in it, cannot be.
func (w *Walker[M, S]) Moves(to []Move, s *S) []Move {
	x := w.own.Part(s)
	to, prompt := x.Packets.Moves(to, &x.Cluster, x.Packets.Sorted(w.own.Key(s)))
	packets := len(to)
	to = w.duties(to, s)
	idle := packets == len(to) && prompt == 0 && !x.Overdue()
	to = w.faults(w.lapses(x.Views(to), s), s)
	if idle && w.next(s, len(to) > 0) > 0 {
		to = append(to, Move{Kind: Waits})
	}
	if n := len(to); n == 0 || to[n-1].Kind == Waits {
		w.Search.Settle(s, w.Fair, w.Bound)
	}
	return to
}

// Fair is what happens next where nothing goes wrong: packets come, then what is due, then faults end and
// members notice things. When nothing of that is left, time passes until all is well; ok is false when it is.
func (w *Walker[M, S]) Fair(s *S) (mv Move, ok bool) {
	x := w.own.Part(s)
	for _, k := range x.Packets.Sorted(w.own.Key(s)) {
		if x.Live(int(x.Packets.At(k).To)) {
			return Move{Kind: Delivers, At: uint8(k)}, true
		}
	}
	if due := w.duties(nil, s); len(due) > 0 {
		return due[0], true
	}
	if mv, ok := x.Cluster.Fair(); ok {
		return mv, true
	}
	if lapses := w.lapses(nil, s); len(lapses) > 0 {
		return lapses[0], true
	}
	return Move{Kind: Waits}, x.Hopeless() || !w.own.Well(s)
}

// Pass is how long it takes until something more can happen: a single step where something may happen at any
// moment. Zero: nothing will.
func (w *Walker[M, S]) Pass(s *S) time.Duration {
	x := w.own.Part(s)
	for k := range x.Packets.Len() {
		if x.Live(int(x.Packets.At(k).To)) {
			return w.next(s, true)
		}
	}
	return w.next(s, len(w.faults(w.lapses(x.Views(nil), s), s)) > 0)
}

func (w *Walker[M, S]) next(s *S, anything bool) time.Duration {
	return w.own.Part(s).Pass(anything, w.deadlines(s)...)
}

// Idle reports whether time brings nothing.
func (w *Walker[M, S]) Idle(s *S) bool { return w.next(s, false) == 0 }

// Begin is the state in which the members that are there from the beginning know each other, and are not
// armed yet.
func (w *Walker[M, S]) Begin(s *S) {
	x := w.own.Part(s)
	x.Cluster = NewCluster(&w.Options)
	for n := range x.Leases {
		x.Leases[n].Holder = Nobody
	}
	for i := range w.Members {
		x.Members[i].Sure = -w.Trust
	}
	on[M, S]{w, s}.Everyone()
}

// Own are the rules of a member.
func (w *Walker[M, S]) Own(i int) slot.Rules {
	r := w.Rules
	r.Self = Name(i)
	return r
}

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
