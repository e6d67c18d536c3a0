package downing_test

import (
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

// stranger is a Serf node in whose place the test asks and answers. With tags it is a member.
type stranger struct {
	t    testing.TB
	serf *serf.Serf
}

// stranger starts a node that answers each question with a payload.
func (c *cluster) stranger(answer func(q *serf.Query) []byte, tags map[string]string) *stranger {
	c.t.Helper()
	events := make(chan serf.Event, 1024)
	s := c.Node("stranger", func(conf *serf.Config) { conf.EventCh, conf.Tags = events, tags })
	go func() {
		for {
			select {
			case e := <-events:
				if q, ok := e.(*serf.Query); ok && q.Name == wire.FrameQuery && answer != nil {
					_ = q.Respond(answer(q))
				}
			case <-s.ShutdownCh():
				return
			}
		}
	}()
	require.NoError(c.t, c.Join(s, "n1"))
	time.Sleep(10 * time.Second)
	return &stranger{t: c.t, serf: s}
}

// ask sends a query under the name of the questions and returns how many answers came.
func (s *stranger) ask(payload []byte) (answers int) {
	s.t.Helper()
	resp, err := s.serf.Query(wire.FrameQuery, payload, &serf.QueryParam{Timeout: 2 * time.Second})
	require.NoError(s.t, err)
	for range resp.ResponseCh() {
		answers++
	}
	return answers
}

func encode(t testing.TB, m wire.Frame) []byte {
	t.Helper()
	b, err := m.Encode()
	require.NoError(t, err)
	return b
}

// A question counts only from the node of the member that it names, and only from a member.
func TestForged_Question(t *testing.T) {
	metered(t, 3, nil, func(t *testing.T, c *cluster, m *meters) {
		c.serve("who", "n1", "n2", "n3")
		s := c.stranger(nil, tagsOf("u"))
		question := func(from sbr.ID) []byte {
			return encode(t, wire.Frame{Kind: wire.Question, From: wire.KeyOf(from), Within: time.Second,
				Topic: "who"})
		}
		require.Equal(t, 3, s.ask(question("stranger#u")), "as a member it is answered")
		require.Zero(t, s.ask(question(c.id("n2"))), "in another one's name")
		require.Zero(t, s.ask(question("nobody#u")))
		require.Zero(t, s.ask([]byte("junk")))
		require.Zero(t, s.ask(encode(t, wire.Frame{Kind: wire.Answer, From: wire.KeyOf("stranger#u")})),
			"an answer is no question")
		m.require("n1", "sbr.talk.received{kind=question} = 1", "sbr.talk.sent{kind=answer} = 1",
			"sbr.talk.ignored{reason=forged} = 2", "sbr.talk.ignored{reason=invalid} = 2")
	})
}

// An answer counts only from a member, from its node, once, and from the member that was asked.
func TestForged_Answer(t *testing.T) {
	var answer []byte
	formed(t, 2, nil, func(t *testing.T, c *cluster) {
		c.hold("who", "n2")
		c.stranger(func(*serf.Query) []byte { return answer }, tagsOf("u"))
		is := func(from sbr.ID) wire.Frame {
			return wire.Frame{Kind: wire.Answer, From: wire.KeyOf(from), Payload: []byte("it is me")}
		}
		answer = encode(t, is("stranger#u"))
		require.Equal(t, map[string]string{"stranger": "it is me"}, all(c.ask("n1", "who", "", "", time.Second)))
		require.Empty(t, all(c.ask("n1", "who", c.id("n2"), "", time.Second)), "somebody else was asked")
		for name, b := range map[string][]byte{
			"in another one's name": encode(t, is(c.id("n2"))),
			"of nobody":             encode(t, is("nobody#u")),
			"junk":                  []byte("junk"),
			"a question":            encode(t, wire.Frame{Kind: wire.Question, From: wire.KeyOf("stranger#u"), Within: time.Second, Topic: "who"}),
		} {
			answer = b
			require.Empty(t, all(c.ask("n1", "who", "", "", time.Second)), name)
			require.Empty(t, all(c.ask("n1", "who", c.id("n2"), "", time.Second)), name)
		}
	})
}

// A handler that panics or hangs keeps nobody from anything: neither other topics nor the resolver.
func TestServe_HandlerThatPanicsOrHangs(t *testing.T) {
	var log logtest.Log
	virtual(t, func(name string, c *downing.Config) { clustertest.MajorityFirst(name, c); c.Logger = log.Warnings() }, func(t *testing.T, c *cluster) {
		names := c.Form(3)
		hang := make(chan struct{})
		_, err := c.provider("n1").Serve("hangs", func(downing.Question) { <-hang })
		require.NoError(t, err)
		calls := 0
		_, err = c.provider("n1").Serve("panics", func(q downing.Question) {
			if calls++; calls == 1 {
				panic("on purpose")
			}
			_ = q.Answer(nil)
		})
		require.NoError(t, err)
		c.serve("who", "n1")
		n1 := c.id("n1")
		for range 400 { // more than may wait
			_, _ = c.provider("n2").Ask("hangs", n1, nil, time.Second)
			time.Sleep(25 * time.Millisecond)
		}
		require.Empty(t, all(c.ask("n2", "panics", n1, "", time.Second)))
		require.Len(t, all(c.ask("n2", "panics", n1, "", 5*time.Second)), 1, "it is called again")
		require.NotEmpty(t, log.With("a handler of questions panicked"))
		require.Equal(t, map[string]string{"n1": "n1 heard x"}, all(c.ask("n2", "who", n1, "x", 5*time.Second)))

		require.NoError(t, c.Net.Partition(names[:2], names[2:]))
		c.requireOneSide([][]string{names[:2]}, 2*time.Minute)
		close(hang)
	})
}
