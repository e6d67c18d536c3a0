package slots

import (
	"encoding/binary"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walktest"
)

// state is everything.
type state struct {
	walktest.Runs[handover.Message]
	machines [walktest.MaxMembers]*handover.Machine // shared between states: copy one before a change

	// The largest token of a run so far, and the newest verdict that a starting member knew.
	token, tokenVerdict uint64
}

type (
	body   = walktest.Body[handover.Message]
	packet = walktest.Packet[body]
)

// AppendKey appends what distinguishes the state from others.
func (w *walker) AppendKey(b []byte, s *state) []byte {
	trust := time.Duration(0)
	if !w.UseLease {
		trust = w.Trust
	}
	b = s.Cluster.AppendKey(b, trust, max(w.Margin, w.Trust, w.LeaseRetryInterval, w.Patience))
	for i := range w.Members {
		if !s.Members[i].Up {
			continue
		}
		w.Canon.Reset()
		r := &s.Runs.Runs[i][0]
		w.Canon.Flags(r.Running, r.Stopping, r.Waits)
		w.Canon.Uint(r.Token)
		s.machines[i].AppendState(&w.Canon)
		b = w.Canon.Append(b)
	}
	l := &s.Leases[0]
	b = append(b, byte(l.Holder))
	for _, n := range [...]uint64{l.Token, s.token, s.tokenVerdict} {
		b = binary.AppendUvarint(b, n)
	}
	return s.Packets.AppendKey(b, s.packetKey)
}

// Key tells packets apart.
func (*walker) Key(s *state) walktest.PacketKey[body] { return s.packetKey }

// packetKey tells packets apart. Of a round, attempt or run counts whether it is the newest.
func (s *state) packetKey(b []byte, l *packet) []byte {
	x := &l.Body
	stale := uint64(0)
	switch {
	case x.Kind == walktest.Question:
		stale = s.machines[l.From].Round() - x.Msg.Round
	case !x.Own():
		stale = s.machines[l.To].Round() - x.Msg.Round
	default:
		stale = s.Newest(l) - x.Number
	}
	b = append(b, byte(x.Kind), byte(min(stale, 1)), byte(x.Msg.Kind))
	b = binary.AppendUvarint(b, x.Msg.Token)
	b = binary.AppendUvarint(b, uint64(x.Msg.Wait))
	return binary.AppendUvarint(b, x.Token)
}
