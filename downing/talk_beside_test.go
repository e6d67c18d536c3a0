package downing_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Beside stock agents, which do not name the sender, everything is as it is in one process.
func TestBeside_Talk(t *testing.T) {
	beside(t, 4, nil, func(t *testing.T, b *besides) {
		b.serve("who", "n1", "n2", "n3")
		held := b.hold("later", "n2")
		require.Equal(t, map[string]string{"n2": "n2 heard x", "n3": "n3 heard x", "n4": "-"}, all(b.ask("n1", "who", "", "x", 2*time.Second)))
		began := time.Now()
		require.Equal(t, map[string]string{"n3": "n3 heard y"}, all(b.ask("n1", "who", b.id("n3"), "y", time.Minute)))
		require.Less(t, time.Since(began), time.Second)

		answers := b.ask("n1", "later", b.id("n2"), "z", 2*time.Second)
		q := <-held
		require.Equal(t, b.id("n1"), q.From)
		require.NoError(t, q.Answer([]byte("in time")))
		require.Equal(t, map[string]string{"n2": "in time"}, all(answers))
		require.Empty(t, all(b.ask("n1", "later", b.id("n2"), "z", 2*time.Second)))
		q = <-held
		time.Sleep(time.Second)
		require.ErrorIs(t, q.Answer(nil), downing.ErrTooLate, "the agent does not say when the time is over; the question does")

		for _, name := range []string{"n1", "n4"} {
			peers := b.provider(name).Peers()
			require.Equal(t, b.id("n1"), peers.List[0].ID)
			require.LessOrEqual(t, b.sureSince(name), downing.DefaultConfig().PollInterval)
		}
	})
}

// With the limits of a stock agent, names of 100 bytes, the longest topic and full payloads every message
// fits, the relayed ones as well.
func TestBeside_Talk_FitsIntoSerfsLimits(t *testing.T) {
	beside(t, 0, nil, func(t *testing.T, b *besides) {
		long := func(name string) string { return name + strings.Repeat("-", 100-len(name)) }
		for _, name := range []string{"n1", "n2", "n3", "n4"} {
			if name == "n1" {
				b.boot(long(name))
			} else {
				b.boot(long(name), long("n1"))
			}
		}
		b.Whole(4)
		topic, full := strings.Repeat("t", 63), bytes.Repeat([]byte{0xff}, downing.MaxTalk)
		for _, name := range []string{"n2", "n3", "n4"} {
			_, err := b.provider(long(name)).Serve(topic, func(q downing.Question) {
				require.Len(t, q.Payload, downing.MaxTalk)
				require.NoError(t, q.Answer(q.Payload))
			})
			require.NoError(t, err)
		}
		got := all(b.ask(long("n1"), topic, "", string(full), 2*time.Second))
		require.Equal(t, map[string]string{long("n2"): string(full), long("n3"): string(full), long("n4"): string(full)}, got)
	})
}

// An agent that does not answer is asked in vain, and nobody is held up by it.
func TestBeside_Talk_SilentAgent(t *testing.T) {
	beside(t, 3, nil, func(t *testing.T, b *besides) {
		time.Sleep(time.Second)
		b.agents["n1"].setSilent(true)
		began := time.Now()
		sure := b.provider("n1").Peers().Sure
		require.Empty(t, all(b.ask("n1", "who", "", "", 2*time.Second)))
		require.Equal(t, 2*time.Second, time.Since(began), "as silent as the others are")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Error(t, b.provider("n1").Offer(ctx, "backup", true))
		time.Sleep(2 * time.Second)
		require.Equal(t, sure, b.provider("n1").Peers().Sure, "who sees nothing is sure of nothing")
		require.Equal(t, sbr.StateSuspended, b.provider("n1").Peers().State)

		b.agents["n1"].setSilent(false)
		b.Eventually(10*time.Second, "what was offered last does not hold", func() bool { return len(b.serves("n2", "n1")) == 1 })
		b.Eventually(10*time.Second, "it is never sure again", func() bool { return b.sureSince("n1") < time.Second })
	})
}

// What is offered is a tag among those of others. Stopping takes it back, also where the incarnation is to be
// gone on with.
func TestBeside_Offer(t *testing.T) {
	for name, config := range map[string]func(string, *downing.Config){"resigns": nil, "is gone on with": keepTags} {
		t.Run(name, func(t *testing.T) {
			beside(t, 3, config, func(t *testing.T, b *besides) {
				for _, topic := range []string{"backup", "reports", "nothing"} {
					require.NoError(t, b.provider("n3").Offer(t.Context(), topic, true))
				}
				require.NoError(t, b.provider("n3").Offer(t.Context(), "nothing", false))
				b.Eventually(5*time.Second, "the others do not see it", func() bool { return strings.Join(b.serves("n1", "n3"), " ") == "backup reports" })
				require.Equal(t, "blue", b.agents["n3"].node.LocalMember().Tags["team"])

				before := b.stopKeeping("n3")
				tags := b.agents["n3"].node.LocalMember().Tags
				require.NotContains(t, tags, downing.TagServes)
				require.Equal(t, config != nil, tags[downing.TagUID] != "")
				time.Sleep(time.Second)
				require.Empty(t, b.serves("n1", "n3"))
				b.protect("n3")
				b.Whole(3)
				require.Equal(t, config != nil, before.Incarnation == string(b.id("n3")))
				require.Empty(t, b.serves("n1", "n3"))
			})
		})
	}
}

// An earlier process ended without taking anything back: its successor offers nothing until it says so.
func TestBeside_Offer_OfAnEarlierProcess(t *testing.T) {
	beside(t, 2, nil, func(t *testing.T, b *besides) {
		b.agent("n3", tagsOf("abcdefgh", downing.TagServes, "backup"), "n1")
		b.Eventually(5*time.Second, "n3 is not seen", func() bool { return len(b.serves("n1", "n3")) == 1 })
		b.protect("n3")
		require.Equal(t, sbr.ID("n3#abcdefgh"), b.id("n3"))
		b.Eventually(5*time.Second, "it still offers what nobody serves", func() bool { return len(b.serves("n1", "n3")) == 0 })
	})
}

// The agent restarts and forgets its tags: what is offered is set again.
func TestBeside_Offer_AgentRestarts(t *testing.T) {
	beside(t, 3, nil, func(t *testing.T, b *besides) {
		require.NoError(t, b.provider("n3").Offer(t.Context(), "backup", true))
		time.Sleep(5 * time.Second)
		b.reboot("n3", "n1")
		b.Whole(3)
		b.Eventually(10*time.Second, "the tag is lost", func() bool { return b.agents["n3"].node.LocalMember().Tags[downing.TagServes] == "backup" })
		require.Equal(t, []string{"backup"}, b.serves("n1", "n3"))
	})
}
