package slots

import (
	"fmt"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	core "github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

// tell says what an effect is, while the way to a violation is told.
func (w *walker) tell(i int, e core.Effect) {
	switch e := e.(type) {
	case core.Ask[handover.Message]:
		w.search.Tell("%s asks %s: %v", name(i), e.To, e.Message.Kind)
	case core.Answer[handover.Message]:
		w.search.Tell("%s answers %s: %v", name(i), name(int(e.Ref)), e.Message.Kind)
	case core.Start:
		w.search.Tell("%s STARTS run %d, token %d", name(i), e.Run, e.Token)
	case core.Stop:
		w.search.Tell("%s stops run %d: %s", name(i), e.Run, e.Why)
	case core.AcquireLease:
		w.search.Tell("%s asks for the lease", name(i))
	case core.ReleaseLease:
		w.search.Tell("%s gives the lease back", name(i))
	case core.Explain:
		if e.Topic == handover.TopicYielded || e.Topic == core.TopicTaking {
			w.search.Tell("%s: %s", name(i), e.Text)
		}
	}
}

var moveTexts = map[walk.Kind]string{endsAgain: "the run of %s ends by itself, for a while", endsDone: "the run of %s ends by itself, for good",
	grants: "%s is GRANTED the lease", doubts: "the lease store gives %s no answer"}

// Describe says what a move is, in a line.
func (w *walker) Describe(s *state, mv walk.Move) string {
	switch mv.Kind {
	case walk.Delivers, walk.Copies, walk.Delays, walk.Drops:
		l := s.Packets.At(int(mv.At))
		return l.Describe(mv, textOf(l))
	case endsAgain, endsDone, grants, doubts:
		return fmt.Sprintf(moveTexts[mv.Kind], name(int(mv.At)))
	case expires:
		return fmt.Sprintf("the lease of %s RUNS OUT", name(int(s.holder)))
	case loses:
		return fmt.Sprintf("the lease of %s is LOST", name(int(s.holder)))
	default:
		return s.Cluster.Describe(mv)
	}
}

// textOf says what is in a packet.
func textOf(l *packet) string {
	switch x := &l.Body; x.kind {
	case unserved:
		return fmt.Sprintf("%s has no manager, round %d", name(int(l.From)), x.msg.Round)
	case leaseAnswer:
		return fmt.Sprintf("the lease is granted, token %d", x.token)
	case leaseUnknown:
		return "nobody knows about the lease"
	case leaseLost:
		return "the lease is lost"
	case leaseReleased:
		return "the lease is given back"
	case runEnded:
		return fmt.Sprintf("run %d has ended", x.number)
	default:
		return fmt.Sprintf("%v of %s, round %d", x.msg.Kind, name(int(l.From)), x.msg.Round)
	}
}
