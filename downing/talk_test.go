package downing_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// serve makes a member answer a topic with its name and what it heard.
func (c *cluster) serve(topic string, names ...string) {
	c.t.Helper()
	for _, name := range names {
		_, err := c.provider(name).Serve(topic, func(q downing.Question) {
			_ = q.Answer([]byte(name + " heard " + string(q.Payload))) // a test that needs it misses it
		})
		require.NoError(c.t, err)
	}
}

// hold makes a member keep its questions.
func (c *cluster) hold(topic, name string) <-chan downing.Question {
	c.t.Helper()
	held := make(chan downing.Question, 16)
	_, err := c.provider(name).Serve(topic, func(q downing.Question) { held <- q })
	require.NoError(c.t, err)
	return held
}

func (c *cluster) ask(name, topic string, to sbr.ID, payload string,
	timeout time.Duration) <-chan downing.Answer {
	c.t.Helper()
	answers, err := c.provider(name).Ask(topic, to, []byte(payload), timeout)
	require.NoError(c.t, err)
	return answers
}

// all reads the answers until the channel is closed, by node name. Unserved is "-".
func all(answers <-chan downing.Answer) map[string]string {
	got := make(map[string]string)
	for a := range answers {
		got[downing.NameOf(a.From)] = string(a.Payload)
		if a.Unserved {
			got[downing.NameOf(a.From)] = "-"
		}
	}
	return got
}

// All members that serve a topic answer, the others say that they do not, no member asks itself, and the
// channel is closed at the time-out.
func TestAsk_Everybody(t *testing.T) {
	formed(t, 5, nil, func(t *testing.T, c *cluster) {
		c.serve("who", "n1", "n2", "n3", "n4")
		began := time.Now()
		require.Equal(t, map[string]string{"n2": "n2 heard hello", "n3": "n3 heard hello", "n4": "n4 heard hello",
			"n5": "-"}, all(c.ask("n1", "who", "", "hello", 2*time.Second)))
		require.Equal(t, 2*time.Second, time.Since(began))
	})
}

// The member that is asked answers, other receivers do not, and then nothing more is waited for.
func TestAsk_One(t *testing.T) {
	formed(t, 3, nil, func(t *testing.T, c *cluster) {
		c.serve("who", "n2")
		others := c.hold("who", "n3")
		began := time.Now()
		require.Equal(t, map[string]string{"n2": "n2 heard hello"},
			all(c.ask("n1", "who", c.id("n2"), "hello", time.Minute)))
		require.Less(t, time.Since(began), time.Second,
			"the channel stays open although there is nothing to wait for")
		time.Sleep(10 * time.Second)
		require.Empty(t, others)
	})
}

// The sender that a handler sees is the one that asked, and the payload is whole, up to the limit.
func TestAsk_QuestionAndAnswerArriveWhole(t *testing.T) {
	formed(t, 2, nil, func(t *testing.T, c *cluster) {
		topic := strings.Repeat("t", 63)
		held := c.hold(topic, "n2")
		full := bytes.Repeat([]byte{0, 0xff}, downing.MaxTalk/2)
		answers := c.ask("n1", topic, c.id("n2"), string(full), time.Minute)
		q := <-held
		require.Equal(t, c.id("n1"), q.From)
		require.Equal(t, full, q.Payload)
		require.ErrorIs(t, q.Answer(append(full, 0)), downing.ErrTalkSize)
		require.NoError(t, q.Answer(full))
		require.Equal(t, downing.Answer{From: c.id("n2"), Payload: full}, <-answers)
	})
}

// A member that serves nothing of the kind says so at once; also when a handler has stopped.
func TestAsk_UnservedIsSaidAtOnce(t *testing.T) {
	formed(t, 2, nil, func(t *testing.T, c *cluster) {
		requireUnserved := func() {
			t.Helper()
			began := time.Now()
			require.Equal(t, map[string]string{"n2": "-"}, all(c.ask("n1", "who", c.id("n2"), "", time.Minute)))
			require.Less(t, time.Since(began), time.Second)
		}
		requireUnserved()
		stopServing, err := c.provider("n2").Serve("who", func(q downing.Question) { _ = q.Answer(nil) })
		require.NoError(t, err)
		_, err = c.provider("n2").Serve("who", func(downing.Question) {})
		require.ErrorIs(t, err, downing.ErrTopicTaken)
		require.Equal(t, map[string]string{"n2": ""}, all(c.ask("n1", "who", c.id("n2"), "", time.Minute)))
		stopServing()
		requireUnserved()
		c.serve("who", "n2")
		stopServing()
		require.Equal(t, map[string]string{"n2": "n2 heard x"}, all(c.ask("n1", "who", c.id("n2"), "x",
			time.Minute)), "a stop that is called twice ends another one's handler")
	})
}

// An answer that comes too late says so and is not delivered; so does a second one. The question is over for
// its sender.
func TestAnswer_TooLate(t *testing.T) {
	formed(t, 2, nil, func(t *testing.T, c *cluster) {
		held := c.hold("who", "n2")
		answers := c.ask("n1", "who", "", "", 3*time.Second)
		q := <-held
		require.Empty(t, all(answers))
		time.Sleep(time.Second)
		require.ErrorIs(t, q.Answer([]byte("late")), downing.ErrTooLate)

		answers = c.ask("n1", "who", "", "", 3*time.Second)
		q = <-held
		time.Sleep(2 * time.Second)
		require.NoError(t, q.Answer([]byte("in time")))
		require.ErrorIs(t, q.Answer([]byte("again")), downing.ErrTooLate)
		require.Equal(t, map[string]string{"n2": "in time"}, all(answers))
	})
}

// What cannot be asked is refused, with the reason.
func TestAsk_Refuses(t *testing.T) {
	formed(t, 2, nil, func(t *testing.T, c *cluster) {
		p := c.provider("n1")
		for name, tc := range map[string]struct {
			topic   string
			to      sbr.ID
			payload int
			timeout time.Duration
			err     error
		}{
			"no topic":          {"", "", 0, time.Second, downing.ErrTopic},
			"a topic of others": {"Who", "", 0, time.Second, downing.ErrTopic},
			"too much":          {"who", "", downing.MaxTalk + 1, time.Second, downing.ErrTalkSize},
			"a stranger":        {"who", "n9#abcdefgh", 0, time.Second, downing.ErrNotMember},
			"another life":      {"who", "n2#abcdefgh", 0, time.Second, downing.ErrNotMember},
			"itself":            {"who", c.id("n1"), 0, time.Second, downing.ErrNotMember},
			"no time":           {"who", "", 0, 0, nil},
			"a negative time":   {"who", "", 0, -time.Second, nil},
			"an eternity":       {"who", "", 0, time.Hour, nil},
		} {
			answers, err := p.Ask(tc.topic, tc.to, make([]byte, tc.payload), tc.timeout)
			require.Error(t, err, name)
			require.Nil(t, answers, name)
			if tc.err != nil {
				require.ErrorIs(t, err, tc.err, name)
			}
		}
		_, err := p.Serve("a/b", func(downing.Question) {})
		require.ErrorIs(t, err, downing.ErrTopic)
		require.ErrorIs(t, p.Offer(t.Context(), "a,b", true), downing.ErrTopic)
	})
}

// A provider that has not started, has stopped, or downs nobody has no members.
func TestTalk_WithoutAMember(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		require.Equal(t, downing.MaxTalk, wire.MaxPayload)
		p := s.provider()
		require.Zero(t, p.Peers())
		requireNotMember := func() {
			t.Helper()
			_, err := p.Ask("who", "", nil, time.Second)
			require.ErrorIs(t, err, downing.ErrNotMember)
			require.ErrorIs(t, p.Offer(t.Context(), "who", true), downing.ErrNotMember)
		}
		requireNotMember()
		_, err := p.Serve("who", func(downing.Question) {})
		require.NoError(t, err, "handlers are in place before the first question")
		node := s.create(p, nil, nil)
		require.NoError(t, p.Start(t.Context(), node))
		time.Sleep(10 * time.Second)
		require.Len(t, p.Peers().List, 1)
		s.end(p, node)
		requireNotMember()

		none, err := downing.New(downing.Config{Provider: downing.NoDowning})
		require.NoError(t, err)
		require.Zero(t, none.Peers())
		none.Follow(func() {})()
		_, err = none.Ask("who", "", nil, time.Second)
		require.ErrorIs(t, err, downing.ErrNoPeers)
		_, err = none.Serve("who", func(downing.Question) {})
		require.ErrorIs(t, err, downing.ErrNoPeers)
		require.ErrorIs(t, none.Offer(t.Context(), "who", true), downing.ErrNoPeers)
	})
}

// A member that asks too much gets an error; the questions that are open stay open.
func TestAsk_TooMuch(t *testing.T) {
	formed(t, 2, nil, func(t *testing.T, c *cluster) {
		asked, refused := 0, 0
		for range 3000 {
			if _, err := c.provider("n1").Ask("who", "", nil, time.Minute); err != nil {
				require.ErrorIs(t, err, downing.ErrTalkBusy)
				refused++
			} else {
				asked++
			}
			time.Sleep(10 * time.Millisecond)
		}
		require.Equal(t, 256, asked, "so many may be open")
		time.Sleep(time.Minute)
		for range 1000 {
			if _, err := c.provider("n1").Ask("who", "", nil, time.Second); err != nil {
				require.ErrorIs(t, err, downing.ErrTalkBusy)
				refused++
			}
		}
		require.Equal(t, 3000-256+800, refused, "in one moment 200 may be asked")
		time.Sleep(time.Minute)
		require.Equal(t, []string{"n1", "n2"}, c.Up())
	})
}

// A member that is down asks nothing, what it had asked is over, and it answers nothing, not even what it was
// asked before.
func TestTalk_MemberThatIsDown(t *testing.T) {
	formed(t, 3, nil, func(t *testing.T, c *cluster) {
		held := c.hold("who", "n3")
		fromN1 := c.ask("n1", "who", c.id("n3"), "", 5*time.Minute)
		q := <-held
		c.hold("who", "n2")
		fromN3 := c.ask("n3", "who", c.id("n2"), "", 5*time.Minute)
		before := c.id("n3")

		require.NoError(t, c.Net.Partition([]string{"n1", "n2"}, []string{"n3"}))
		<-c.provider("n3").Downed()
		began := time.Now()
		require.Empty(t, all(fromN3))
		require.Less(t, time.Since(began), time.Second, "its question is still open")
		require.ErrorIs(t, q.Answer([]byte("a dead one's")), downing.ErrNotMember)
		_, err := c.provider("n3").Ask("who", "", nil, time.Second)
		require.ErrorIs(t, err, downing.ErrNotMember)
		require.ErrorIs(t, c.provider("n3").Offer(t.Context(), "who", true), downing.ErrNotMember)
		require.Equal(t, sbr.StateDown, c.provider("n3").Peers().State)

		c.Eventually(time.Minute, "the others do not decide",
			func() bool { return c.provider("n1").Peers().Verdict == 1 })
		_, err = c.provider("n1").Ask("who", before, nil, time.Second)
		require.ErrorIs(t, err, downing.ErrNotMember)
		c.Net.Heal()
		require.Empty(t, all(fromN1))
	})
}

// A member that leaves while it is asked answers until its node is gone: with its last words it hands over.
func TestTalk_MemberThatLeavesStillAnswers(t *testing.T) {
	formed(t, 3, nil, func(t *testing.T, c *cluster) {
		held := c.hold("who", "n3")
		answers := c.ask("n1", "who", c.id("n3"), "", time.Minute)
		q := <-held
		require.NoError(t, c.Member("n3").Serf.Leave())
		c.Eventually(10*time.Second, "n3 has not gone",
			func() bool { return len(c.provider("n1").Peers().List) == 2 })
		require.NoError(t, q.Answer([]byte("last words")))
		require.Equal(t, map[string]string{"n3": "last words"}, all(answers))
		require.NoError(t, c.Member("n3").Serf.Shutdown())
		time.Sleep(time.Second)
		_, err := c.provider("n3").Ask("who", "", nil, time.Second)
		require.ErrorIs(t, err, downing.ErrNotMember)
	})
}

// Questions that are open when the provider stops are over, and nothing is left behind.
func TestLeak_OpenQuestions(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		p, node := s.started()
		time.Sleep(5 * time.Second)
		stopFollowing := p.Follow(func() {})
		defer stopFollowing()
		require.NoError(t, p.Offer(t.Context(), "who", true))
		answers, err := p.Ask("who", "", nil, 5*time.Minute)
		require.NoError(t, err)
		stop(t, p)
		_, open := <-answers
		require.False(t, open)
		require.NotContains(t, node.LocalMember().Tags, downing.TagServes, "nobody serves it any more")
		require.NotEmpty(t, node.LocalMember().Tags[downing.TagUID])
		require.NoError(t, node.Leave())
		require.NoError(t, node.Shutdown())
	})
}

// Everything at once, from many goroutines: for the race detector.
func TestTalk_Concurrently(t *testing.T) {
	virtual(t, nil, func(t *testing.T, c *cluster) {
		names := c.Form(3)
		var wg sync.WaitGroup
		for _, name := range names {
			p := c.provider(name)
			for i := range 4 {
				wg.Go(func() {
					topic := fmt.Sprintf("t%d", i)
					for range 20 {
						stopServing, err := p.Serve(topic, func(q downing.Question) { go func() { _ = q.Answer(q.Payload) }() })
						require.NoError(t, err)
						stopFollowing := p.Follow(func() { p.Peers() })
						ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
						_ = p.Offer(ctx, topic, true)
						cancel()
						answers, err := p.Ask(topic, "", []byte("x"), time.Second)
						require.NoError(t, err)
						for a := range answers {
							require.True(t, a.Unserved || string(a.Payload) == "x")
						}
						stopFollowing()
						stopServing()
						runtime.Gosched()
					}
				})
			}
		}
		wg.Wait()
		synctest.Wait()
		require.Equal(t, names, c.Up())
	})
}
