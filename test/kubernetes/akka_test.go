package kubernetes_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/kubefake"
	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// The tests of this file let Go parties and emulated Akka nodes contend for one lease on a real API server,
// with the default times, on clocks that the test moves.

const (
	theirSpan = 96 * time.Second // 120 s less two intervals of 12 s
	ourWindow = 79 * time.Second // less one interval and the operation timeout of 5 s
)

type mixedWorld struct {
	realWorld
	t     *testing.T
	clock *leasetest.Clock
}

func newMixedWorld(t *testing.T, api kubernetes.API) mixedWorld {
	return mixedWorld{newCustomWorld(t, kubetest.Shared(t), api), t, leasetest.NewClock()}
}

func (w mixedWorld) party(owner string) *lease.Lease {
	w.t.Helper()
	l, err := lease.New(w.store(w.t), owner, lease.DefaultSettings(), lease.Options{Clock: w.clock})
	require.NoError(w.t, err)
	w.t.Cleanup(l.Close)
	return l
}

func (w mixedWorld) akka(owner string) *akkaNode {
	w.t.Helper()
	return newAkkaNode(w.t, w.realWorld, owner, w.clock, lease.DefaultSettings())
}

func (w mixedWorld) outcome(l *lease.Lease, want sbr.Outcome) lease.Record {
	w.t.Helper()
	out := linear.AnswerOf(l.Acquire(w.t.Context(), lease.Proposal{}))
	require.Equal(w.t, want, out.Kind, "%v", out)
	return out.Record
}

func TestAkka_ReleaseByEitherIsSeenByTheOther(t *testing.T) {
	for _, api := range []kubernetes.API{kubernetes.Akka, kubernetes.Pekko} {
		t.Run(string(api), func(t *testing.T) {
			w := newMixedWorld(t, api)
			a, n := w.party("go"), w.akka("akka")

			require.EqualValues(t, 1, w.outcome(a, sbr.Granted).Token)
			require.False(t, n.acquire())
			require.NoError(t, a.Release(t.Context()))

			require.True(t, n.acquire())
			held := w.outcome(a, sbr.Held)
			require.Equal(t, "akka", held.Holder)
			require.Greater(t, held.Token, uint64(1), "the token goes on although the record is gone")
			n.release()

			again := w.outcome(a, sbr.Granted)
			require.Greater(t, again.Token, held.Token)
			require.False(t, n.acquire())
		})
	}
}

// A waiting Go party hears of the release by its watch.
func TestAkka_ReleaseIsWatched(t *testing.T) {
	w := newMixedWorld(t, kubernetes.Akka)
	n := w.akka("akka")
	require.True(t, n.acquire())
	seen := watching(t, w.store(t))
	first := next(t, seen)
	require.Equal(t, "akka", first.Record.Holder)
	require.Equal(t, w.clock.Now().UnixMilli(), first.Record.Renewed.UnixMilli())
	w.clock.Advance(12 * time.Second)
	n.tick()
	beat := next(t, seen)
	require.Equal(t, 12*time.Second, beat.Record.Renewed.Sub(first.Record.Renewed),
		"a heartbeat is a sign of life")
	n.release()
	free := next(t, seen)
	require.Empty(t, free.Record.Holder)
	require.Greater(t, free.Record.Token, first.Record.Token)
}

func TestAkka_ACrashedOwnerIsReplacedByGo(t *testing.T) {
	w := newMixedWorld(t, kubernetes.Akka)
	a, n := w.party("go"), w.akka("akka")
	require.True(t, n.acquire())
	first := w.outcome(a, sbr.Held)
	n.crash()
	w.clock.Advance(120*time.Second - time.Millisecond)
	require.Equal(t, "akka", w.outcome(a, sbr.Held).Holder,
		"judged by what was seen from here, not by the time in the record")
	w.clock.Advance(time.Millisecond)
	require.Greater(t, w.outcome(a, sbr.Granted).Token, first.Token)
	require.False(t, n.acquire())
}

// A holder without a connection stops before they may take over, and no later.
func TestAkka_GoStopsTrustingItselfFirst(t *testing.T) {
	w := newMixedWorld(t, kubernetes.Akka)
	proxy := kubetest.NewProxy(t, w.kubeconfig)
	l, err := lease.New(w.storeBy(t, proxy.Kubeconfig()), "go", lease.DefaultSettings(),
		lease.Options{Clock: w.clock})
	require.NoError(t, err)
	t.Cleanup(l.Close)
	n := w.akka("akka")
	record := w.outcome(l, sbr.Granted)
	proxy.SetFault(dropAll)
	w.clock.Advance(ourWindow - time.Millisecond)
	require.True(t, l.Check())
	w.clock.Advance(time.Millisecond)
	require.False(t, l.Check())
	require.False(t, n.acquire(), "17 s are left for a write under way and for clocks that differ")
	w.clock.Advance(theirSpan - ourWindow)
	require.False(t, n.acquire(), "their comparison is strict")
	w.clock.Advance(time.Millisecond)
	require.True(t, n.acquire())
	require.Greater(t, w.outcome(w.party("go-2"), sbr.Held).Token, record.Token)
}

func dropAll(*http.Request) kubetest.Fault { return kubetest.Fault{Kind: kubetest.FaultDropRequest} }

// What their PUT drops: the verdict is gone from the store. A party that has seen it remembers, a later party
// cannot know.
func TestAkka_DropsTheVerdict(t *testing.T) {
	w := newMixedWorld(t, kubernetes.Akka)
	a, n := w.party("go"), w.akka("akka")
	verdict := &sbr.Verdict{Survivors: []sbr.ID{"go"}, Down: []sbr.ID{"x"}, DecidedBy: "go"}
	out := linear.AnswerOf(a.Acquire(t.Context(), lease.Proposal{Verdict: verdict}))
	require.Equal(t, sbr.Granted, out.Kind, "%v", out)
	require.NoError(t, a.Release(t.Context()))
	require.NotNil(t, w.outcome(w.party("newcomer"), sbr.Granted).Verdict, "as long as nobody else writes")
	w.clock.Advance(theirSpan + time.Millisecond)
	require.True(t, n.acquire())
	require.Nil(t, kubefake.Meta(w.stored(t))["annotations"])

	remembered, err := a.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, out.Record.Verdict, remembered.Verdict)
	late, err := w.party("late").Read(t.Context())
	require.NoError(t, err)
	require.Nil(t, late.Verdict)
	require.Greater(t, late.Token, out.Record.Token)
}

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
	l, err := lease.New(c.storeBy(c.t, proxy.Kubeconfig()), fmt.Sprintf("go-%d", c.lives),
		lease.DefaultSettings(), lease.Options{Clock: c.clock})
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
