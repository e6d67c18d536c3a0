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
	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// A member sends a verdict that is not in the lease: a member that can read the lease ignores it, and says
// so.
func TestForged_VerdictThatIsNotInTheLease(t *testing.T) {
	var log logtest.Log
	virtual(t, func(_ string, c *downing.Config) { c.Logger = log.Warnings() }, func(t *testing.T, c *cluster) {
		names := c.Form(3)
		p := c.puppet()
		for token := range uint64(3) {
			verdict := wire.Message{Kind: wire.KindVerdict, From: p.id, Token: token + 1, By: p.id, Whole: true, Up: []sbr.ID{p.id}, Down: []sbr.ID{c.id("n2"), c.id("n3")}}
			require.Empty(t, p.say(verdict))
		}
		time.Sleep(time.Minute)
		require.Equal(t, names, c.Up())
		require.Zero(t, c.provider("n1").Status().Verdict.Token)
		require.NotEmpty(t, log.With("ignored a message from=puppet kind=verdict why=verdict 1 is not in the lease"))
		require.NoError(t, p.serf.Shutdown())
	})
}

// A stock agent does not name the sender of a query: the message does.
func TestForged_BesideAnAgentTheMessageNamesItsSender(t *testing.T) {
	var log logtest.Log
	beside(t, func(_ string, c *downing.Config) { c.Logger = log.Warnings() }, func(t *testing.T, b *besides) {
		b.bootAll(3)
		p := b.puppet()
		require.Empty(t, p.say(wire.Message{Kind: wire.KindVerdict, From: p.id, Token: 1, By: p.id, Whole: true, Up: []sbr.ID{p.id}}))
		time.Sleep(time.Minute)
		require.NotEmpty(t, log.With("ignored a message from=puppet kind=verdict why=verdict 1 is not in the lease"), log.String())
		require.NoError(t, p.serf.Shutdown())
	})
}

// An order of a member that does not lead, and one in the name of the member that does, are ignored, even in
// the middle of a partition.
func TestForged_OrderOfWhoDoesNotLead(t *testing.T) {
	for _, strategy := range []string{"lease-majority", "keep-majority"} {
		t.Run(strategy, func(t *testing.T) {
			virtual(t, func(name string, c *downing.Config) { patient(name, c); c.Strategy = strategy }, func(t *testing.T, c *cluster) {
				names := c.Form(4)
				p := c.puppet()
				order := func(from sbr.ID, kind sbr.Kind, down ...sbr.ID) {
					t.Helper()
					require.Empty(t, p.say(wire.Message{Kind: wire.KindOrder, From: from, Decided: kind.String(), Down: down, Reason: "forged"}))
				}
				forge := func() {
					t.Helper()
					order(p.id, sbr.DownUnreachable, c.id("n2"))
					order(p.id, sbr.DownAll, c.id("n1"), c.id("n2"), c.id("n3"), c.id("n4"), p.id)
					order(c.id("n1"), sbr.DownUnreachable, c.id("n2"))
					order(c.id("n1"), sbr.DownAll, c.id("n1"), c.id("n2"), c.id("n3"), c.id("n4"), p.id)
				}
				forge()
				require.NoError(t, c.Net.Freeze("n4"))
				c.Eventually(time.Minute, "n4 is not missed", func() bool { return slices.Contains(c.provider("n1").Status().Unreachable, "n4") })
				forge()
				require.NoError(t, c.Net.Thaw("n4"))
				time.Sleep(time.Minute)
				require.Equal(t, names, c.Up())
				require.NoError(t, p.serf.Shutdown())
			})
		})
	}
}

// Ten thousand events and queries a second that mean nothing down nobody, fill no memory, and do not keep a
// member from its work: a partition that comes in the middle of them is resolved.
func TestFlood_JunkDownsNobodyAndKeepsNothing(t *testing.T) {
	long(t)
	var log logtest.Log
	virtual(t, func(name string, c *downing.Config) { clustertest.MajorityFirst(name, c); c.Logger = log.Warnings() }, func(t *testing.T, c *cluster) {
		tap := c.tapped("n2")
		forged := wire.Encode(wire.Message{Kind: wire.KindOrder, From: c.id("n3"), Decided: sbr.DownAll.String(), Down: []sbr.ID{c.id("n1"), c.id("n2"), c.id("n3")}})[0]
		report := wire.Encode(wire.Message{Kind: wire.KindReport, From: "nobody#u", Down: []sbr.ID{c.id("n2"), "who#ever"}})[0]
		c.outlasts(tap, func(i int) []serf.Event {
			payload := [][]byte{[]byte(fmt.Sprintf("junk %d", i)), forged, report}[i%3]
			at := serf.LamportTime(i / 10)
			return []serf.Event{serf.UserEvent{LTime: at, Name: "sbr", Payload: payload}, &serf.Query{LTime: at, Name: wire.MessageQuery, Payload: payload}}
		})
		require.Less(t, len(log.With("ignored a message")), 20, "lines")
	})
}

// tapped forms a cluster of three, and returns where the events of one of them go in.
func (c *cluster) tapped(name string) (tap chan<- serf.Event) {
	c.t.Helper()
	c.Options.Serf = func(_ string, conf *serf.Config) { conf.EventCh = nil }
	c.Options.Prepared = func(n string, conf *serf.Config) {
		if n == name {
			tap = conf.EventCh
		}
	}
	c.Form(3)
	return tap
}

// outlasts floods a member with what the i-th of ten thousand moments a second brings. It must down nobody
// and leave nothing behind, and a partition that comes in the middle must be resolved.
func (c *cluster) outlasts(tap chan<- serf.Event, moment func(i int) []serf.Event) {
	c.t.Helper()
	flood := func(d time.Duration) {
		for i := range int(d / time.Millisecond) {
			for j := range 10 {
				for _, e := range moment(10*i + j) {
					tap <- e
				}
			}
			time.Sleep(time.Millisecond)
		}
	}
	names := c.Up()
	flood(time.Second)
	before := heap()
	flood(10 * time.Second)
	require.Equal(c.t, names, c.Up())
	require.Less(c.t, heap(), before+4<<20, "bytes: the flood left something behind")
	require.NoError(c.t, c.Net.Partition(names[:2], names[2:]))
	flood(10 * time.Second)
	c.requireOneSide([][]string{names[:2]}, 2*time.Minute)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
