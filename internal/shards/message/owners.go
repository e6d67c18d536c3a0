package message

import "github.com/serf-sbr/serf-sbr/internal/slot"

// Owners learns who owns which shard from what coordinators and hosts say to everybody. It is for callers,
// who need to know where to go; it decides nothing. A member that it names may not run the shard yet, or not
// any more: whoever is asked has to look for itself.
//
// It is not safe for concurrent use.
type Owners struct {
	digest uint64
	term   uint64 // the largest of a coordinator that was heard of
	shards []owned
}

// owned is who has a shard, or is about to take it; Nobody: nobody, or it is not known. The largest number is
// the newest word.
type owned struct {
	by     Key
	number uint64
}

// NewOwners returns a table that knows nothing yet of n shards, whose list has a digest (see Digest).
func NewOwners(n int, digest uint64) *Owners {
	return &Owners{digest: digest, shards: make([]owned, n)}
}

// Of returns who owns a shard.
func (t *Owners) Of(shard int) Key {
	if shard < 0 || shard >= len(t.shards) {
		return Nobody
	}
	return t.shards[shard].by
}

// Learn takes in a message that a member has sent: Orders, Places, State and Resigned; others say nothing
// about owners.
func (t *Owners) Learn(from Key, m *Message) {
	if m.Digest != t.digest || from == Nobody {
		return
	}
	set := func(shard int, by Key, number uint64) {
		if shard < len(t.shards) && number > t.shards[shard].number {
			t.shards[shard] = owned{by, number}
		}
	}
	switch m.Kind {
	case Orders, Places:
		if m.Term < t.term {
			return // of a coordinator that is none any more
		}
		t.term = m.Term
		for _, o := range m.Orders {
			if o.To != Nobody {
				set(o.Shard, o.To, o.Number)
			}
		}
		for i, k := range m.Owners {
			set(m.First+i, k, m.Number)
		}
	case State:
		for _, e := range m.Entries {
			if e.Phase == slot.Active {
				set(e.Shard, from, e.Number)
			}
		}
	case Resigned:
		for s := range t.shards {
			if t.shards[s].by == from {
				t.shards[s].by = Nobody
			}
		}
	}
}
