package downing_test

import (
	"bytes"
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

// A stock agent does not name the sender of a query: the message does.
func TestForged_BesideAnAgentTheMessageNamesItsSender(t *testing.T) {
	var log logtest.Log
	beside(t, 3, func(_ string, c *downing.Config) { c.Logger = log.Warnings() },
		func(t *testing.T, b *besides) {
			p := b.puppet()
			require.Empty(t, p.say(wire.Message{Kind: wire.KindVerdict, From: p.id, Token: 1, By: p.id, Whole: true,
				Up: []sbr.ID{p.id}}))
			time.Sleep(time.Minute)
			require.NotEmpty(t, log.With("ignored a message from=puppet kind=verdict why=verdict 1 is not in the lease"), log.String())
			require.NoError(t, p.serf.Shutdown())
		})
}

// What a sender has no right to say is ignored and not answered, even in the middle of a partition: orders of
// a member that does not lead, or in the name of the one that does; messages in the name of somebody who is no
// member, or of another life of the sender; verdicts that are not in the lease; and junk.
func TestForged_IsIgnored(t *testing.T) {
	for _, strategy := range []string{"lease-majority", "keep-majority"} {
		t.Run(strategy, func(t *testing.T) {
			config := func(name string, c *downing.Config) { patient(name, c); c.Strategy = strategy }
			formed(t, 4, config, func(t *testing.T, c *cluster) {
				p := c.puppet()
				n1, n2 := c.id("n1"), c.id("n2")
				all := []sbr.ID{n1, n2, c.id("n3"), c.id("n4"), p.id}
				downs, ends := sbr.DownUnreachable.String(), sbr.DownAll.String()
				messages := []wire.Message{
					{Kind: wire.KindOrder, From: p.id, Decided: downs, Down: []sbr.ID{n2}},
					{Kind: wire.KindOrder, From: p.id, Decided: ends, Down: all},
					{Kind: wire.KindOrder, From: n1, Decided: downs, Down: []sbr.ID{n2}},
					{Kind: wire.KindOrder, From: n1, Decided: ends, Down: all},
					{Kind: wire.KindOrder, From: "nobody#u", Decided: ends, Down: all},
					{Kind: wire.KindVerdict, From: "nobody#u", Token: 99, By: "nobody#u", Whole: true, Down: all},
					{Kind: wire.KindVerdict, From: "puppet#other", Token: 99, By: p.id, Whole: true, Up: []sbr.ID{p.id}, Down: all},
					{Kind: wire.KindReport, From: "nobody#u", Down: all},
					{Kind: wire.KindAsk, From: "nobody#u", Up: all},
				}
				if strategy == "lease-majority" {
					messages = append(messages, wire.Message{
						Kind: wire.KindVerdict, From: p.id, Token: 1, By: p.id, Whole: true, Up: []sbr.ID{p.id}, Down: all[1:3],
					})
				}
				noOrder := `{"k":"order","f":"puppet#u","x":"acquire-lease-and-down-unreachable","d":["` + string(n1) +
					`"]}`
				forge := func() {
					for _, m := range messages {
						require.Empty(t, p.say(m), m)
					}
					for _, junk := range []string{"", "junk", noOrder} {
						require.Empty(t, p.send([]byte(junk)))
					}
				}
				forge()
				require.NoError(t, c.Net.Freeze("n4"))
				c.Eventually(time.Minute, "n4 is not missed",
					func() bool { return slices.Contains(c.provider("n1").Status().Unreachable, "n4") })
				forge()
				require.NoError(t, c.Net.Thaw("n4"))
				time.Sleep(time.Minute)
				require.Equal(t, allFive[:4], c.Up())
				require.Zero(t, c.provider("n1").Status().Verdict.Token)
			})
		})
	}
}

// Ten thousand events and queries a second, junk, forged and valid ones, down nobody, fill no memory, and do
// not keep a member from its work: a partition that comes in the middle of them is resolved.
func TestFlood_DownsNobodyAndKeepsNothing(t *testing.T) {
	long(t)
	var log logtest.Log
	virtual(t, func(name string, c *downing.Config) { clustertest.MajorityFirst(name, c); c.Logger = log.Warnings() }, func(t *testing.T, c *cluster) {
		var tap chan<- serf.Event
		c.Options.Serf = func(_ string, conf *serf.Config) { conf.EventCh = nil }
		c.Options.Prepared = onlyFor("n2", func(conf *serf.Config) { tap = conf.EventCh })
		names := c.Form(3)
		hang := make(chan struct{})
		defer close(hang)
		_, err := c.provider("n2").Serve("hangs", func(downing.Question) { <-hang })
		require.NoError(t, err)
		n3, junk := c.id("n3"), bytes.Repeat([]byte{1}, 800)
		all := []sbr.ID{c.id("n1"), c.id("n2"), n3}
		messages := [][]byte{
			junk,
			wire.Encode(wire.Message{Kind: wire.KindOrder, From: n3, Decided: sbr.DownAll.String(), Down: all})[0],
			wire.Encode(wire.Message{Kind: wire.KindReport, From: "nobody#u",
				Down: []sbr.ID{c.id("n2"), "who#ever"}})[0],
		}
		questions := [][]byte{
			encode(t, wire.Frame{Kind: wire.Question, From: wire.KeyOf(n3), Within: time.Second, Topic: "who"}),
			encode(t, wire.Frame{Kind: wire.Question, From: wire.KeyOf(n3), Within: time.Minute, Topic: "hangs"}),
			junk, nil,
		}
		flood := func(d time.Duration) {
			for ms := range int(d / time.Millisecond) {
				for i := range 10 {
					at, message := serf.LamportTime(ms), messages[i%3]
					tap <- serf.UserEvent{LTime: at, Name: "sbr", Payload: message}
					tap <- &serf.Query{LTime: at, Name: wire.MessageQuery, Payload: message}
					tap <- &serf.Query{Name: wire.FrameQuery, Payload: questions[i%4]}
				}
				time.Sleep(time.Millisecond)
			}
		}
		flood(time.Second)
		before := heap()
		flood(10 * time.Second)
		require.Equal(t, names, c.Up())
		require.Less(t, heap(), before+4<<20, "bytes: the flood left something behind")
		require.NoError(t, c.Net.Partition(names[:2], names[2:]))
		flood(10 * time.Second)
		c.requireOneSide([][]string{names[:2]}, 2*time.Minute)
		for _, line := range []string{"ignored a message", "ignored a question"} {
			require.Less(t, len(log.With(line)), 20, line)
		}
	})
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
