package downing_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/gossip"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// A member tells a verdict that is not in the lease: whoever can read the lease does not believe it, and says so.
func TestForged_VerdictThatIsNotInTheLease(t *testing.T) {
	var log lines
	virtual(t, func(_ string, c *downing.Config) { c.Logger = log.logger() }, func(t *testing.T, c *cluster) {
		names := c.startAll(3)
		p := c.puppet()
		for token := range uint64(3) {
			verdict := gossip.Message{Kind: gossip.KindVerdict, From: p.id, Token: token + 1, By: p.id, Whole: true, Up: []sbr.ID{p.id}, Down: []sbr.ID{c.id("n2"), c.id("n3")}}
			require.Empty(t, p.say(verdict))
		}
		time.Sleep(time.Minute)
		require.Equal(t, names, c.up())
		require.Zero(t, c.members["n1"].provider.Status().Verdict.Token)
		require.NotEmpty(t, log.with("ignored a message"))
		require.NoError(t, p.serf.Shutdown())
	})
}

// An order of a member that does not lead, and one in the name of the member that does, are ignored, even in the middle of a partition.
func TestForged_OrderOfWhoDoesNotLead(t *testing.T) {
	for _, strategy := range []string{"lease-majority", "keep-majority"} {
		t.Run(strategy, func(t *testing.T) {
			virtual(t, func(name string, c *downing.Config) { patient(name, c); c.Strategy = strategy }, func(t *testing.T, c *cluster) {
				names := c.startAll(4)
				p := c.puppet()
				order := func(from sbr.ID, kind sbr.Kind, down ...sbr.ID) {
					t.Helper()
					require.Empty(t, p.say(gossip.Message{Kind: gossip.KindOrder, From: from, Decided: kind.String(), Down: down, Reason: "forged"}))
				}
				forge := func() {
					t.Helper()
					order(p.id, sbr.DownUnreachable, c.id("n2"))
					order(p.id, sbr.DownAll, c.id("n1"), c.id("n2"), c.id("n3"), c.id("n4"), p.id)
					order(c.id("n1"), sbr.DownUnreachable, c.id("n2"))
					order(c.id("n1"), sbr.DownAll, c.id("n1"), c.id("n2"), c.id("n3"), c.id("n4"), p.id)
				}
				forge()
				require.NoError(t, c.net.Freeze("n4"))
				c.eventually(time.Minute, func() bool { return slices.Contains(c.members["n1"].provider.Status().Unreachable, "n4") }, "n4 is not missed")
				forge()
				require.NoError(t, c.net.Thaw("n4"))
				time.Sleep(time.Minute)
				require.Equal(t, names, c.up())
				require.NoError(t, p.serf.Shutdown())
			})
		})
	}
}

// Ten thousand events and queries a second that mean nothing down nobody, fill no memory, and do not keep a member from its work: a
// partition that comes in the middle of them is resolved.
func TestFlood_JunkDownsNobodyAndKeepsNothing(t *testing.T) {
	var log lines
	virtual(t, func(name string, c *downing.Config) { majorityFirst(name, c); c.Logger = log.logger() }, func(t *testing.T, c *cluster) {
		taps := make(map[string]chan<- serf.Event)
		c.serf = func(name string, conf *serf.Config) { conf.EventCh = nil }
		c.prepared = func(name string, conf *serf.Config) { taps[name] = conf.EventCh }
		names := c.startAll(3)
		forged := gossip.Encode(gossip.Message{Kind: gossip.KindOrder, From: c.id("n3"), Decided: sbr.DownAll.String(), Down: []sbr.ID{c.id("n1"), c.id("n2"), c.id("n3")}})[0]
		report := gossip.Encode(gossip.Message{Kind: gossip.KindReport, From: "nobody#u", Down: []sbr.ID{c.id("n2"), "who#ever"}})[0]
		flood := func(d time.Duration) {
			for i := range int(d / time.Millisecond) {
				for j := range 10 {
					payload := [][]byte{[]byte(fmt.Sprintf("junk %d %d", i, j)), forged, report}[j%3]
					taps["n2"] <- serf.UserEvent{LTime: serf.LamportTime(i), Name: "sbr", Payload: payload}
					taps["n2"] <- &serf.Query{LTime: serf.LamportTime(i), Name: gossip.QueryName, Payload: payload}
				}
				time.Sleep(time.Millisecond)
			}
		}
		flood(time.Second)
		before := heap()
		flood(10 * time.Second)
		require.Equal(t, names, c.up())
		require.Less(t, heap(), before+4<<20, "bytes: 200,000 messages left something behind")
		require.Less(t, len(log.with("ignored a message")), 20, "lines")

		require.NoError(t, c.net.Partition(names[:2], names[2:]))
		flood(10 * time.Second)
		c.requireOneSide([][]string{names[:2]}, 2*time.Minute)
	})
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
