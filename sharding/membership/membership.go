// Package membership is what the machines of sharding know of the cluster's members.
package membership

import (
	"encoding/binary"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Peer is one member.
type Peer struct {
	ID sbr.ID
	// Name is what outlives a restart: a member gets its former shards back by it.
	Name string
	// Candidate says that the member offers to run shards of the type.
	Candidate bool
	// Leaving: on its way out. Down: downed by a verdict or an order. Unreachable: from here.
	Leaving, Down, Unreachable bool
}

// View is what a member's resolver says of the cluster.
type View struct {
	// Armed says that the member takes part: before that it runs nothing.
	Armed bool
	// Sure is the last moment, on the driver's clock, at which nothing was amiss; negative: never.
	Sure time.Duration
	// Peers are all members that it knows, itself included or not. Whoever is given a View keeps it: do not change them.
	Peers []Peer
}

// Peer returns a member; nil if there is none.
func (v *View) Peer(id sbr.ID) *Peer {
	for i := range v.Peers {
		if v.Peers[i].ID == id {
			return &v.Peers[i]
		}
	}
	return nil
}

// AppendState appends a canonical encoding of the view, with times relative to now, and returns the extended slice.
func (v *View) AppendState(b []byte, now time.Duration) []byte {
	flag := func(set bool) byte {
		if set {
			return 1
		}
		return 0
	}
	b = append(b, flag(v.Armed))
	b = binary.AppendVarint(b, int64(v.Sure-now))
	for i := range v.Peers {
		p := &v.Peers[i]
		b = binary.AppendUvarint(b, uint64(len(p.ID)))
		b = append(b, p.ID...)
		b = append(b, flag(p.Candidate), flag(p.Leaving), flag(p.Down), flag(p.Unreachable))
	}
	return b
}
