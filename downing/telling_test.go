package downing_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// tagsOf are the tags of a member that was born long ago and knows of no verdict, and more, as names and values.
func tagsOf(uid string, more ...string) map[string]string {
	tags := map[string]string{downing.TagUID: uid, downing.TagBorn: "1", downing.TagSeen: "0"}
	for pair := range slices.Chunk(more, 2) {
		tags[pair[0]] = pair[1]
	}
	return tags
}

// startAt starts a plain Serf node and joins it to n1. The error says that it may not join.
func startAt(c *cluster, name string, tags map[string]string) error {
	return c.Join(c.Node(name, func(conf *serf.Config) { maps.Copy(conf.Tags, tags) }), "n1")
}

// puppet is a member in whose place the test speaks.
type puppet struct {
	t    testing.TB
	serf *serf.Serf
	id   sbr.ID
}

func (c *cluster) puppet() *puppet {
	p := c.leadingPuppet()
	p.join(c)
	return p
}

// leadingPuppet starts a puppet that joins later: the first address leads.
func (c *cluster) leadingPuppet() *puppet {
	s := c.Node("puppet", func(conf *serf.Config) { conf.Tags = tagsOf("u") })
	return &puppet{t: c.t, serf: s, id: "puppet#u"}
}

func (p *puppet) join(c *cluster) {
	require.NoError(p.t, c.Join(p.serf, "n1"))
	time.Sleep(10 * time.Second)
}

// say sends a message to everybody and returns the answers by name.
func (p *puppet) say(m wire.Message) map[string]wire.Message {
	p.t.Helper()
	payloads := wire.Encode(m)
	require.Len(p.t, payloads, 1)
	return p.send(payloads[0])
}

func (p *puppet) send(payload []byte) map[string]wire.Message {
	p.t.Helper()
	resp, err := p.serf.Query(wire.MessageQuery, payload, &serf.QueryParam{Timeout: 2 * time.Second})
	require.NoError(p.t, err)
	answers := make(map[string]wire.Message)
	for r := range resp.ResponseCh() {
		a, err := wire.Decode(r.Payload)
		require.NoError(p.t, err)
		answers[r.From] = a
	}
	return answers
}

func (c *cluster) id(name string) sbr.ID {
	return sbr.ID(c.provider(name).Status().Incarnation)
}

// patient keeps members from deciding anything by themselves.
func patient(_ string, c *downing.Config) { c.Resolver.StableAfter = time.Hour }

func kinds(answers map[string]wire.Message) map[string]wire.Kind {
	out := make(map[string]wire.Kind)
	for name, a := range answers {
		out[name] = a.Kind
	}
	return out
}

// A member that receives a verdict, and cannot ask the lease store, acts on it and answers; a member that it
// does not name does not answer. A later request for a standing is answered by all members.
func TestTell_VerdictIsTakenInAndAnswered(t *testing.T) {
	virtual(t, nil, func(t *testing.T, c *cluster) {
		for _, n := range c.Form(3) {
			c.Store.View(n).SetUnavailable(true)
		}
		p := c.puppet()
		verdict := wire.Message{Kind: wire.KindVerdict, From: p.id, Token: 1, By: p.id, Whole: true,
			Reason: "a test",
			Up:     []sbr.ID{c.id("n1"), c.id("n2"), p.id}, Down: []sbr.ID{c.id("n3")}}
		require.Equal(t, map[string]wire.Kind{"n1": wire.KindDone, "n2": wire.KindDone, "n3": wire.KindDone},
			kinds(p.say(verdict)))
		require.Equal(t, []string{"n1", "n2"}, c.Up())
		require.Contains(t, c.provider("n3").Reason(), "a test")
		require.Equal(t, uint64(1), c.provider("n1").Status().Verdict.Token)

		ask := wire.Message{Kind: wire.KindStanding, From: p.id}
		require.Equal(t, map[string]wire.Kind{"n1": wire.KindClear, "n2": wire.KindClear}, kinds(p.say(ask)))
		ask.From = "late#u" // a member that had read nothing when it started
		for name, a := range p.say(ask) {
			require.Equal(t, wire.KindVerdict, a.Kind, name)
			require.Equal(t, []sbr.ID{"late#u"}, a.Down, name)
			v := a.Event().(sbr.Told).Verdict
			require.Equal(t, sbr.Out, v.Standing("late#u", 0))
		}
	})
}

// An order that a member must ignore, because it sees nobody unreachable yet, is not answered; so it is told
// again, and obeyed once the member sees what the sender sees.
func TestTell_OrderThatCameTooEarlyIsToldAgain(t *testing.T) {
	virtual(t, patient, func(t *testing.T, c *cluster) {
		p := c.leadingPuppet()
		c.Form(3)
		p.join(c)
		order := wire.Message{Kind: wire.KindOrder, From: p.id, Decided: sbr.DownAll.String(), Reason: "unstable",
			Down: []sbr.ID{c.id("n2"), p.id}}
		require.Empty(t, p.say(order))
		alone := wire.Message{Kind: wire.KindOrder, From: p.id, Decided: sbr.DownUnreachable.String(),
			Reason: "forged", Down: []sbr.ID{c.id("n2")}}
		require.Empty(t, p.say(alone), "with a lease nobody is downed without a verdict while all is well")
		require.Len(t, c.Up(), 3)
		require.NoError(t, c.Net.Freeze("n3"))
		c.Eventually(time.Minute, "n3 is not missed",
			func() bool { return slices.Contains(c.provider("n2").Status().Unreachable, "n3") })
		require.Equal(t, map[string]wire.Kind{"n2": wire.KindDone}, kinds(p.say(order)))
		require.True(t, c.Member("n2").Down())
		require.Contains(t, c.provider("n2").Reason(), "unstable")
		require.NoError(t, c.Net.Thaw("n3"))
	})
}

// The members of a losing side that reach the store go down at the same moment and tell each other. None
// waits for answers that nobody gives any more: their processes end soon.
func TestTell_LosersDoNotWaitForEachOther(t *testing.T) {
	formed(t, 6, nil, func(t *testing.T, c *cluster) {
		require.NoError(t, c.Net.Partition([]string{"n1", "n2", "n6"}, []string{"n3", "n4", "n5"}))
		c.Eventually(2*time.Minute, "no side went down", func() bool { return len(c.Up()) == 3 })
		for _, m := range c.Members() {
			name := m.Name
			if c.Member(name).Down() {
				<-m.Provider.Done()
				// a round of telling that got lost is two seconds
				require.Less(t, time.Since(m.DownAt()), 9*time.Second, name)
			}
		}
	})
}

// A verdict that takes several messages is handled by all members, and the sender gets an answer from each
// member that any part names.
func TestTell_EveryPartOfALongVerdictIsAnswered(t *testing.T) {
	long(t)
	var log logtest.Log
	virtual(t, func(name string, c *downing.Config) { c.Logger = log.Logger(); clustertest.MajorityFirst(name, c) }, func(t *testing.T, c *cluster) {
		long := strings.Repeat("x", 110)
		names := []string{"n1" + long, "n2" + long, "n3" + long, "n4" + long, "n5" + long}
		c.Boot(names[0])
		for _, n := range names[1:] {
			c.Boot(n, names[0])
		}
		time.Sleep(time.Minute)
		require.NoError(t, c.Net.Partition(names[:3], names[3:]))
		c.requireOneSide([][]string{names[:3]}, 2*time.Minute)
		time.Sleep(time.Minute)
		for _, n := range names[:3] {
			v := c.provider(n).Status().Verdict
			require.Len(t, v.Survivors, 3, n)
			require.Len(t, v.Down, 2, n)
		}
		require.Empty(t, log.With("did not answer"))
		require.Empty(t, log.With("not sent"))
	})
}
