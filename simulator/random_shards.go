package simulator

import (
	"math/rand/v2"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// shardsOf is chance for the shards of a seed. It is apart from that of the rest: with shards a seed's cluster and faults are what they are without.
func shardsOf(seed uint64) *dice {
	const stream = 0x5a4d
	return &dice{Rand: rand.New(rand.NewPCG(seed, stream))}
}

// shards run in some clusters, with and without a lease for each; their margin is that of singletons.
func (r *dice) shards(b *Scenario) {
	if !r.coin(0.4) {
		return
	}
	x := scenario.Shards{Type: "orders", Count: 1 + r.IntN(8), UseLease: strictyaml.Switch(r.coin(0.5))}
	if least := 2 * noticed(&b.s); bool(x.UseLease) {
		x.RemovalMargin = r.span(100*time.Millisecond, 20*time.Second)
	} else {
		x.RemovalMargin = r.span(least, least+20*time.Second)
	}
	x.HandOverRetryInterval = r.span(200*time.Millisecond, 3*time.Second)
	x.NumberOfRetries = 1 + r.IntN(20)
	x.LeaseRetryInterval = r.span(time.Second, 10*time.Second)
	x.StopTakes = r.span(100*time.Millisecond, 15*time.Second)
	if r.coin(0.3) {
		x.EndsAfter = r.span(10*time.Second, 4*time.Minute)
	}
	if r.coin(0.2) {
		x.ReopenedAfter = r.span(30*time.Second, 5*time.Minute)
	}
	if r.coin(0.5) {
		x.Role = b.s.Cluster.SplitBrainResolver.LeaseMajority.Role
	}
	b.s.Cluster.Shards = append(b.s.Cluster.Shards, x)
}
