package singleton_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/singleton"
)

// A manager that begins shortly after others were downed waits for their margin, also where they are out of the list by then: one that is
// started for the first time as well as one that follows another one in its process.
func TestMargin_IsWaitedForByAManagerThatBeginsLater(t *testing.T) {
	for _, way := range []string{"for the first time", "again"} {
		t.Run(way, func(t *testing.T) {
			clustertest.Virtual(t, clustertest.Options{Config: clustertest.Quick}, func(t *testing.T, cl *clustertest.Cluster) {
				const margin = time.Minute
				c := newCrew(t, cl, func(_ string, cfg *singleton.Config) { cfg.RemovalMargin = margin })
				c.Form(3)
				defer c.stop()
				c.start("n1")
				c.runsOn("n1", 2*margin)
				c.start("n2")
				if way == "again" {
					c.start("n3")
				}
				require.NoError(t, c.Net.Partition([]string{"n1"}, []string{"n2", "n3"}))
				c.Eventually(time.Minute, "n1 is not downed", func() bool { return len(c.Member("n3").Provider.Peers().Gone) == 1 })
				downed := c.Member("n3").Provider.Peers().Gone[0].At
				if way == "again" {
					require.NoError(t, c.managers["n3"].Stop(context.Background()))
				}
				require.NoError(t, c.managers["n2"].Stop(context.Background()))
				c.Eventually(margin/2, "n1 is still listed", func() bool {
					p := c.Member("n3").Provider.Peers()
					return p.Find(p.Gone[0].ID) == nil
				})
				c.start("n3")
				c.Eventually(2*margin, "it does not run", func() bool { return c.diary.last("starts").name == "n3" })
				require.GreaterOrEqual(t, c.diary.last("starts").at.Sub(downed), margin)
				require.Less(t, c.diary.last("starts").at.Sub(downed), margin+5*time.Second)
				require.Equal(t, []string{"one.backup"}, topicsOf(c.Member("n3").Provider.Peers().Gone))
			})
		})
	}
}

func topicsOf(gone []downing.Departure) (topics []string) {
	for _, d := range gone {
		for _, topic := range d.Serves {
			if topic[:4] == "one." {
				topics = append(topics, topic)
			}
		}
	}
	return topics
}
