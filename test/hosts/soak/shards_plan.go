//go:build linux

package main

import (
	"math/rand/v2"
	"slices"

	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
)

// ofShards keeps what is drawn for shards apart from what is drawn for the rest.
const ofShards = 2 << 32

// newShardPlan is the plan of a round with shards: each other one has leases. Their hosts are nodes of their own.
func newShardPlan(seed uint64, round int) plan {
	p := newPlan(seed, round)
	p.Mode = ownMode
	for i := range p.Faults {
		if p.Faults[i].Target != "" {
			p.Faults[i].Target = both
		}
	}
	d := dice{rand.New(rand.NewPCG(seed, ofShards|uint64(round)))}
	s := &singlePlan{Shards: shardCount, Scene: cutScene, Guard: cluster.ByMembers, Aim: d.IntN(2) > 0, InPeace: d.IntN(2) == 0}
	p.Single = s
	s.DrainsCoordinator = d.IntN(2) == 0
	if round%2 == 0 {
		s.Guard = cluster.ByBoth
	}
	victim := []string{hosts[d.IntN(len(hosts))]}
	switch x := d.IntN(100); {
	case x < 44:
		if n := len(p.Sides); n > 0 && d.IntN(6) == 0 {
			s.NoLedger = sorted(p.Sides[n-1])
		}
		return p
	case x < 58:
		s.Scene = stillScene
		p.quiet(fault{Kind: pause, Hosts: victim, Target: both})
	case x < 72:
		s.Scene = crashScene
		p.quiet(fault{Kind: crash, Hosts: victim})
	case x < 82:
		s.Scene = rollingScene
		s.Order = slices.Clone(hosts)
		d.Shuffle(len(s.Order), func(i, j int) { s.Order[i], s.Order[j] = s.Order[j], s.Order[i] })
		p.quiet()
	case x < 94:
		s.Scene = leaveScene
		p.quiet(fault{Kind: map[bool]kind{true: departure, false: desertion}[s.InPeace], Hosts: victim})
	default:
		s.Scene = killScene
		p.quiet(fault{Kind: kill, Hosts: victim, Target: both})
	}
	return p
}
