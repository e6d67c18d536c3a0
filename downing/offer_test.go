package downing_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
)

// serves is what a member serves in the eyes of another.
func (c *cluster) serves(of, name string) []string {
	p, _ := c.peer(of, name)
	return p.Serves
}

// What is offered the others see, sorted; what is taken back is gone, and so is the tag.
func TestOffer_SeenByTheOthers(t *testing.T) {
	virtual(t, nil, func(t *testing.T, c *cluster) {
		c.Options.Serf = func(_ string, conf *serf.Config) { conf.Tags = map[string]string{"team": "blue"} }
		c.Form(3)
		p := c.provider("n2")
		for _, topic := range []string{"reports", "backup", "backup"} {
			require.NoError(t, p.Offer(t.Context(), topic, true))
		}
		time.Sleep(time.Second)
		for _, name := range []string{"n1", "n2", "n3"} {
			require.Equal(t, []string{"backup", "reports"}, c.serves(name, "n2"))
			require.Empty(t, c.serves(name, "n1"))
		}
		require.NoError(t, p.Offer(t.Context(), "backup", false))
		require.NoError(t, p.Offer(t.Context(), "never-offered", false))
		time.Sleep(time.Second)
		require.Equal(t, []string{"reports"}, c.serves("n1", "n2"))
		require.NoError(t, p.Offer(t.Context(), "reports", false))
		time.Sleep(time.Second)
		require.Empty(t, c.serves("n1", "n2"))
		tags := c.Member("n2").Serf.LocalMember().Tags
		require.NotContains(t, tags, downing.TagServes)
		require.Equal(t, "blue", tags["team"], "those of others stay")
		require.NotEmpty(t, tags[downing.TagUID])
	})
}

// Where nothing is gossiped Serf waits for seconds until its change of tags is sent: taking an offer back
// does not wait.
func TestOffer_IsTakenBackWithoutWaitingForTheGossip(t *testing.T) {
	virtual(t, nil, func(t *testing.T, c *cluster) {
		c.Options.Serf = func(_ string, conf *serf.Config) { conf.MemberlistConfig.GossipInterval = time.Hour }
		c.Form(2)
		require.NoError(t, c.provider("n2").Offer(t.Context(), "backup", true))
		began := time.Now()
		require.NoError(t, c.provider("n2").Offer(t.Context(), "backup", false))
		require.Less(t, time.Since(began), 200*time.Millisecond)
		time.Sleep(time.Minute)
		require.Empty(t, c.serves("n1", "n2"))
	})
}

// Offers of different topics at the same time do not lose each other.
func TestOffer_AtTheSameTime(t *testing.T) {
	formed(t, 2, nil, func(t *testing.T, c *cluster) {
		var wg sync.WaitGroup
		var want []string
		began := time.Now()
		for i := range 20 {
			topic := fmt.Sprintf("topic-%02d", i)
			wg.Go(func() {
				require.NoError(t, c.provider("n2").Offer(t.Context(), topic, true))
				require.Contains(t, c.Member("n2").Serf.LocalMember().Tags[downing.TagServes], topic,
					"it is set when Offer returns")
				if i%2 == 1 {
					require.NoError(t, c.provider("n2").Offer(t.Context(), topic, false))
				}
			})
			if i%2 == 0 {
				want = append(want, topic)
			}
		}
		wg.Wait()
		require.Less(t, time.Since(began), 4*time.Second,
			"what came up during one write is in the next: twenty writes take longer")
		time.Sleep(time.Second)
		require.Equal(t, want, c.serves("n1", "n2"))
	})
}

// The tags never exceed what Serf allows, and room for what the resolver still has to set is kept.
func TestOffer_TagsFull(t *testing.T) {
	virtual(t, nil, func(t *testing.T, c *cluster) {
		c.Options.Serf = func(_ string, conf *serf.Config) {
			conf.Tags = map[string]string{"short": "x", "long": strings.Repeat("x", 100),
				"at-the-limit-of-31-bytes-of-text": strings.Repeat("y", 31)}
		}
		c.Form(2)
		p := c.provider("n2")
		offered := 0
		var err error
		for ; err == nil; offered++ {
			err = p.Offer(t.Context(), fmt.Sprintf("topic-%02d", offered), true)
		}
		require.ErrorIs(t, err, downing.ErrTagsFull)
		require.ErrorContains(t, err, "512")
		node := c.Member("n2").Serf
		used := len(node.Memberlist().LocalNode().Meta)
		t.Logf("%d topics, %d bytes of tags", offered-1, used)
		require.Less(t, used, memberlist.MetaMaxSize-20)
		require.Greater(t, used, memberlist.MetaMaxSize-40, "there was room for another one")
		time.Sleep(time.Second)
		require.Len(t, c.serves("n1", "n2"), offered-1)

		tags := maps.Clone(node.LocalMember().Tags)
		tags[downing.TagIn] = "1y2p0ij32e8e7"
		require.NoError(t, node.SetTags(tags))
		require.NoError(t, p.Offer(t.Context(), "topic-00", false),
			"with full tags something can still be taken out")
	})
}

// An application that replaces the tags does not end what is offered, and what it brings back is not offered
// again.
func TestOffer_TagsThatTheApplicationSets(t *testing.T) {
	formed(t, 2, nil, func(t *testing.T, c *cluster) {
		node := c.Member("n2").Serf
		require.NoError(t, c.provider("n2").Offer(t.Context(), "backup", true))
		old := maps.Clone(node.LocalMember().Tags)
		require.NoError(t, node.SetTags(map[string]string{"team": "green"}))
		time.Sleep(10 * time.Second)
		require.Equal(t, []string{"backup"}, c.serves("n1", "n2"))
		require.Equal(t, "green", node.LocalMember().Tags["team"])
		require.NoError(t, c.provider("n2").Offer(t.Context(), "backup", false))
		require.NoError(t, node.SetTags(old))
		time.Sleep(10 * time.Second)
		require.Empty(t, c.serves("n1", "n2"))
	})
}

// A process that starts offers nothing, whatever its configuration says; nor is rubbish in another one's tag
// a topic.
func TestOffer_BeginsWithout(t *testing.T) {
	virtual(t, nil, func(t *testing.T, c *cluster) {
		c.Options.Serf = func(_ string, conf *serf.Config) { conf.Tags = map[string]string{downing.TagServes: "backup"} }
		c.Form(2)
		require.Empty(t, c.serves("n1", "n2"))
		c.stranger(nil, tagsOf("u", downing.TagServes, "b,,A b,a,b,\x00,../c"))
		require.Equal(t, []string{"a", "b"}, c.serves("n1", "stranger"))
	})
}

// An offer whose caller gives up holds all the same.
func TestOffer_CallerGivesUp(t *testing.T) {
	formed(t, 2, nil, func(t *testing.T, c *cluster) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := c.provider("n2").Offer(ctx, "backup", true)
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
		time.Sleep(5 * time.Second)
		require.True(t, slices.Equal([]string{"backup"}, c.serves("n1", "n2")))
	})
}
