// Package places learns who owns which shard from what coordinators and hosts say to everybody. It is for callers, who need to know where to go; it
// decides nothing. A member that it names may not run the shard yet, or not any more: whoever is asked has to look for itself.
package places

import (
	"slices"

	"github.com/serf-sbr/serf-sbr/sharding/message"
)

// Place is where a shard is, as far as is known.
type Place struct {
	// Owner has it, or is about to take it; Nobody: nobody, or it is not known.
	Owner message.Key
	// Former is the member that Owner takes it from, if the newest word was an order; Nobody otherwise.
	Former message.Key
	// Number orders the words on the shard: the largest is the newest. 0: none was heard.
	Number uint64
}

// Table is where the shards of one type are. It is not safe for concurrent use.
type Table struct {
	digest uint64
	term   uint64
	places []Place
}

// New returns a table that knows nothing yet of n shards, whose list has a digest (message.Digest).
func New(n int, digest uint64) *Table { return &Table{digest: digest, places: make([]Place, n)} }

// Place returns where a shard is.
func (t *Table) Place(shard int) Place {
	if shard < 0 || shard >= len(t.places) {
		return Place{}
	}
	return t.places[shard]
}

// Term returns the largest term of a coordinator that was heard of.
func (t *Table) Term() uint64 { return t.term }

// Learn takes in a message that a member has sent: Orders, Places, State and Resigned; others say nothing about places. It returns the shards whose
// Place is another now, in order.
func (t *Table) Learn(from message.Key, m *message.Message) (changed []int) {
	if m.Digest != t.digest || from == message.Nobody {
		return nil
	}
	switch m.Kind {
	case message.Orders, message.Places:
		if m.Term < t.term {
			return nil // of a coordinator that is none any more
		}
		t.term = m.Term
	}
	set := func(shard int, p Place) {
		if shard < len(t.places) && p.Number > t.places[shard].Number {
			if old := t.places[shard]; old.Owner != p.Owner || old.Former != p.Former {
				changed = append(changed, shard)
			}
			t.places[shard] = p
		}
	}
	switch m.Kind {
	case message.Orders:
		for _, o := range m.Orders {
			if o.To != message.Nobody {
				set(o.Shard, Place{o.To, o.From, o.Number})
			}
		}
	case message.Places:
		for i, k := range m.Owners {
			set(m.First+i, Place{Owner: k, Number: m.Number})
		}
	case message.State:
		for _, e := range m.Entries {
			if e.Phase == message.Running {
				set(e.Shard, Place{Owner: from, Number: e.Number})
			}
		}
	case message.Resigned:
		for s, p := range t.places {
			if p.Owner == from {
				changed = append(changed, s)
				t.places[s] = Place{Number: p.Number}
			}
		}
	}
	return changed
}

// Forget takes in that a member is gone, and returns the shards that it had, in order. What it had is not known to be anybody's.
func (t *Table) Forget(member message.Key) []int {
	return t.Learn(member, &message.Message{Kind: message.Resigned, Digest: t.digest})
}

// Clone returns an independent copy.
func (t *Table) Clone() *Table {
	c := *t
	c.places = slices.Clone(t.places)
	return &c
}
