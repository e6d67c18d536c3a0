package kubernetes_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// TestAkka_NeverTwoAtOnce lets all clients acquire, release, crash, lose the API server and come back at
// random. With equal wall clocks, and with clocks that differ by up to one heartbeat-interval, there is one
// holder at most, and tokens only grow.
func TestAkka_NeverTwoAtOnce(t *testing.T) {
	for _, skew := range []time.Duration{0, -12 * time.Second, 12 * time.Second} {
		t.Run(fmt.Sprintf("Akka is behind by %v", skew), func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			newContest(t, skew, seed).run(800)
		})
	}
}

// contest is a world of three Go parties and three Akka nodes.
type contest struct {
	mixedWorld
	rng     *rand.Rand
	parties []*goParty
	nodes   []*akkaNode
	judge   *kubernetes.Store
	token   uint64
	// byGo and byAkka count grants, lives the lives of Go parties.
	byGo, byAkka, lives int
}

type goParty struct {
	*lease.Lease
	proxy *kubetest.Proxy
	cut   bool
}

func newContest(t *testing.T, skew time.Duration, seed uint64) *contest {
	c := &contest{mixedWorld: newMixedWorld(t, kubernetes.Akka), rng: rand.New(rand.NewPCG(seed, 0))}
	c.judge = c.store(t)
	for i := range 3 {
		proxy := kubetest.NewProxy(c.t, c.kubeconfig)
		c.parties = append(c.parties, c.newLife(proxy))
		n := c.akka(fmt.Sprintf("akka-%d", i))
		n.clock = behind{c.clock, skew}
		c.nodes = append(c.nodes, n)
	}
	return c
}

func (c *contest) newLife(proxy *kubetest.Proxy) *goParty {
	c.lives++
	l, err := lease.New(c.storeBy(c.t, proxy.Kubeconfig()), fmt.Sprintf("go-%d", c.lives), lease.DefaultSettings(), lease.Options{Clock: c.clock})
	require.NoError(c.t, err)
	c.t.Cleanup(l.Close)
	return &goParty{Lease: l, proxy: proxy}
}

func (c *contest) run(steps int) {
	for range steps {
		c.clock.Advance(time.Duration(1+c.rng.IntN(4000)) * time.Millisecond)
		for _, n := range c.nodes {
			n.tick()
		}
		c.oneHolder()
		if c.rng.IntN(2) == 0 {
			c.ofGo(c.rng.IntN(len(c.parties)))
		} else {
			c.ofAkka(c.nodes[c.rng.IntN(len(c.nodes))])
		}
		c.oneHolder()
		c.tokensGrow()
	}
	c.t.Logf("granted: Go %d, Akka %d", c.byGo, c.byAkka)
	require.Positive(c.t, c.byGo)
	require.Positive(c.t, c.byAkka)
}

// ofGo lets one party do something. While it is cut off it would only wait for a clock that does not move
// meanwhile.
func (c *contest) ofGo(i int) {
	p, dice := c.parties[i], c.rng.IntN(6)
	switch {
	case p.cut:
		if dice == 0 {
			p.cut = false
			p.proxy.SetFault(nil)
		}
	case !p.Check():
		if linear.AnswerOf(p.Acquire(c.t.Context(), lease.Proposal{})).Kind == sbr.Granted {
			c.byGo++
		}
	case dice == 0:
		_ = p.Release(c.t.Context())
	case dice == 1:
		p.Close()
		c.parties[i] = c.newLife(p.proxy)
	case dice == 2:
		p.cut = true
		p.proxy.SetFault(dropAll)
	}
}

func (c *contest) ofAkka(n *akkaNode) {
	switch dice := c.rng.IntN(6); {
	case n.cut:
		n.cut = dice > 0
	case !n.granted:
		if n.acquire() {
			c.byAkka++
		}
	case dice == 0:
		n.release()
	case dice == 1:
		n.crash()
	case dice == 2:
		n.cut = true
	}
}

func (c *contest) oneHolder() {
	c.t.Helper()
	var holders []string
	for _, l := range c.parties {
		if l.Check() {
			holders = append(holders, l.Owner())
		}
	}
	for _, n := range c.nodes {
		if n.check() {
			holders = append(holders, n.owner)
		}
	}
	require.LessOrEqual(c.t, len(holders), 1, "%v", holders)
}

func (c *contest) tokensGrow() {
	c.t.Helper()
	s, err := c.judge.Read(c.t.Context())
	require.NoError(c.t, err)
	require.GreaterOrEqual(c.t, s.Record.Token, c.token, "%+v", s.Record)
	c.token = s.Record.Token
}
