package world

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// StoreOptions are the properties of the lease store and of each member's client to it.
type StoreOptions struct {
	// Latency is the least time of one leg, Jitter what chance adds at most.
	Latency, Jitter time.Duration
	lease.Settings
}

func (o *StoreOptions) validate() error {
	err := o.Settings.Validate()
	if o.Latency < 0 || o.Jitter < 0 {
		err = errors.Join(err, errors.New("the store's latency must not be negative"))
	}
	return err
}

// Access says whether a node reaches the lease store.
type Access uint8

// The kinds of access.
const (
	// Open: requests get through.
	Open Access = iota
	// Silent: requests and answers vanish.
	Silent
	// Refused: the rights are missing.
	Refused
)

var accessNames = [...]string{"open", "silent", "refused"}

// String returns the access in lower case.
func (a Access) String() string { return accessNames[a] }

// StoreFault is what happens to a node's requests to the store. The zero StoreFault is none.
type StoreFault struct {
	Access Access
	// LoseRequests and LoseAnswers are the shares that vanish on the way to and from the store.
	LoseRequests, LoseAnswers float64
	// Conflicts is the share of writes before which another client touches the record, so that their
	// condition fails.
	Conflicts float64
	// Late is the share of writes that arrive up to LateBy too late, long after the client may have given up.
	Late   float64
	LateBy time.Duration
	// Slow is added to each leg.
	Slow time.Duration
}

// String is for traces.
func (f StoreFault) String() string {
	return fmt.Sprintf("%s, requests lost %g, answers lost %g, conflicts %g, late %g by %v, slow %v",
		f.Access, f.LoseRequests, f.LoseAnswers, f.Conflicts, f.Late, f.LateBy, f.Slow)
}

// words say what the fault does; nothing of none.
func (f StoreFault) words() string {
	var parts []string
	share := func(what string, p float64) {
		switch {
		case p >= 1:
			parts = append(parts, what)
		case p > 0:
			parts = append(parts, fmt.Sprintf("%s (%.0f %%)", what, 100*p))
		}
	}
	switch f.Access {
	case Silent:
		parts = append(parts, "unreachable")
	case Refused:
		parts = append(parts, "refuses")
	}
	share("loses requests", f.LoseRequests)
	share("loses answers", f.LoseAnswers)
	share("conflicts", f.Conflicts)
	share("late writes", f.Late)
	if f.Slow > 0 {
		parts = append(parts, fmt.Sprintf("slow by %v", 2*f.Slow))
	}
	return strings.Join(parts, ", ")
}

// SetStore changes how the nodes, by index, reach the store; without nodes it is about all.
func (w *World) SetStore(f StoreFault, nodes ...int) {
	if len(nodes) == 0 {
		for i := range w.nodes {
			nodes = append(nodes, i)
		}
	}
	w.disturb()
	for _, i := range nodes {
		n := w.nodes[i]
		w.note(nil, "store", "%s: %s", n.Name, f)
		n.fault = f
		n.harm(f != StoreFault{})
		if n.proc != nil && f.Access == Open {
			n.proc.eachClient((*client).wake)
		}
	}
}

// state is one state of the store. Without a record there is none.
type state struct {
	record lease.Record
	exists bool
	writes uint64 // grows with every write
}

// store keeps one record and changes it only by compare-and-swap, like every real one.
type store struct {
	w *World
	state
	clients []*client
	// slot is whose lease it keeps; nil: the resolvers'.
	slot *slot
	// chain are all verdicts ever committed, by token, writtenAt is when.
	chain     []sbr.Verdict
	writtenAt []time.Duration
	// wentBack says that the record was ever deleted or replaced by an older one; lost is what it forgot
	// then, see forget.go.
	wentBack   bool
	lost       *forgotten
	writesBack bool // the write that is committed now tells the store again what it forgot
}

// String is for people.
func (s *store) String() string {
	if s.slot == nil {
		return "the resolvers"
	}
	return s.slot.String()
}

// at is the version of the record.
func (s *store) at() lease.Version {
	if !s.exists {
		return ""
	}
	return lease.Version(strconv.FormatUint(s.writes, 10))
}

// snapshot is what a read shows. Nobody changes a verdict that was written, so all share it.
func (s *store) snapshot() lease.Snapshot { return lease.Snapshot{Record: s.record, Version: s.at()} }

// touch is a write that changes nothing but the version. It makes the record if there is none.
func (s *store) touch() {
	s.exists = true
	s.writes++
}

// commit replaces the record if its version still is prev.
func (s *store) commit(by *process, prev lease.Version, next lease.Record) bool {
	if s.at() != prev {
		return false
	}
	old := s.record
	s.state = state{record: next, exists: true, writes: s.writes + 1}
	defer s.changed()
	if s.slot != nil {
		s.slot.committed(by, &old, &next)
		return true
	}
	s.writesBack = next.Token != old.Token && s.known(next.Verdict)
	if s.writesBack {
		s.toldAgain(by, &next)
	} else if next.Token != old.Token {
		v := next.Verdict
		s.overwritten(v)
		s.w.trace.mix(s.w.now, by, "committed")
		s.w.trace.number(v.Token)
		if s.w.wordy() {
			s.w.say(by, "committed", "token %d, survivors %v, down %v", next.Token, names(v.Survivors), names(v.Down))
		}
		s.chain, s.writtenAt = append(s.chain, *v.Clone()), append(s.writtenAt, s.w.now)
	}
	s.w.eachCheck(func(c checker) { c.committed(s.w, by, &old, &next) })
	return true
}

func (s *store) changed() {
	for _, c := range s.clients {
		c.wake()
	}
}

// verdict returns the newest committed verdict, the zero Verdict if there is none.
func (s *store) verdict() *sbr.Verdict {
	if len(s.chain) == 0 {
		return &sbr.Verdict{}
	}
	last := &s.chain[len(s.chain)-1]
	if s.record.Verdict != nil && s.record.Token >= last.Token {
		return s.record.Verdict // told again after last was written, even under its token
	}
	return last
}
