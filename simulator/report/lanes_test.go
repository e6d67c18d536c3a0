package report

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator/internal/world"
)

// crowd is a history of so many nodes, of which every third goes down, each at its own time; n1 holds the lease.
func crowd(nodes int) *world.History {
	h := &world.History{End: time.Minute}
	groups := make([]int, nodes)
	for i := range nodes {
		h.Nodes = append(h.Nodes, fmt.Sprintf("n%d", i+1))
		h.Watched = append(h.Watched, i < 9)
		if i%3 == 2 {
			groups[i] = 1
		}
		h.Changes = append(h.Changes, world.Change{What: world.Lived{Node: i, Life: world.Up}})
	}
	h.Changes = append(h.Changes, world.Change{At: 10 * time.Second, What: world.Rewired{Groups: groups}})
	for i := range 9 {
		for j := range nodes {
			if groups[i] != groups[j] {
				h.Changes = append(h.Changes, world.Change{At: 14 * time.Second, What: world.Viewed{Observer: i, Subject: j, Sight: world.Failed}})
			}
		}
	}
	h.Changes = append(h.Changes, world.Change{At: 20 * time.Second, What: world.Held{Node: 0}},
		world.Change{At: 20 * time.Second, What: world.Ruled{By: 0, Token: 1}})
	for i := range nodes {
		if groups[i] == 1 {
			at := 20*time.Second + time.Duration(i)*time.Millisecond
			h.Changes = append(h.Changes, world.Change{At: at, What: world.Lived{Node: i, Life: world.Downed}},
				world.Change{At: at, What: world.Said{Node: i, Kind: "down", Text: "told by n3"}})
		}
	}
	return h
}

// Members with equal histories share a lane; whoever had a part of its own has its own.
func TestCast_GroupsEqualHistories(t *testing.T) {
	h := crowd(3000)
	c := castOf(h)
	var labels []string
	for _, l := range c.lanes {
		labels = append(labels, l.label)
	}
	require.Equal(t, []string{"n1", "n2 … n2999 (1,999)", "n3 … n3000 (1,000)"}, labels)
	require.Zero(t, c.hidden)
	down := c.lanes[2].lives[1]
	require.Equal(t, world.Downed, down.life)
	require.Equal(t, 20*time.Second+2*time.Millisecond, down.early)
	require.Equal(t, 20*time.Second+2999*time.Millisecond, down.late)
	require.InDelta(t, float64(21500*time.Millisecond), float64(down.from), float64(10*time.Millisecond), "half of them were down by then")
}

func TestCast_WhoeverHeldTheLeaseHasALane(t *testing.T) {
	h := crowd(300)
	h.Changes = append(h.Changes, world.Change{At: 50 * time.Second, What: world.Held{Node: 99}})
	c := castOf(h)
	require.Equal(t, []int{99}, c.lanes[c.of[99]].nodes)
}

func TestCast_SmallClustersHaveALaneEach(t *testing.T) {
	require.Len(t, castOf(crowd(maxOwn)).lanes, maxOwn)
	require.Len(t, castOf(crowd(maxOwn+1)).lanes, 3)
}

// What there is no room for is counted, and never drawn as somebody else's.
func TestCast_TooManyKinds(t *testing.T) {
	h := crowd(500)
	for i := range 300 {
		h.Changes = append(h.Changes, world.Change{At: 30 * time.Second, What: world.Hurt{Node: i, Fault: world.StoreFault{Slow: time.Duration(i + 1)}}})
	}
	c := castOf(h)
	require.Len(t, c.lanes, maxLanes)
	seen := c.hidden
	for i, l := range c.lanes {
		seen += len(l.nodes)
		for _, n := range l.nodes {
			require.Equal(t, i, c.of[n])
		}
	}
	require.Equal(t, 500, seen)
	require.Positive(t, c.hidden)
	storyOf(h) // and the rest copes with members that have no lane
}

// What a thousand members do within seconds is one event; what they see of each other is one cell.
func TestStory_LargeClustersStaySmall(t *testing.T) {
	h := crowd(10_000)
	s := storyOf(h)
	require.Len(t, s.Lanes, 3)
	require.Less(t, len(s.Events), 10)
	require.Equal(t, "n3 and 1,000 more", s.Events[0].Who)
	require.Less(t, len(s.Data.Changes), 30)
	said := make(map[string]string)
	for _, c := range s.Data.Changes {
		if c.See != nil {
			said[fmt.Sprint(c.See.By, c.See.Of)] = c.See.Is
		}
	}
	require.Equal(t, map[string]string{"0 2": "failed", "1 2": "failed", "2 0": "failed", "2 1": "failed"}, said)
}

// Where only some of those that were watched see somebody as failed, the cell says so.
func TestSighting_Some(t *testing.T) {
	h := crowd(30)
	h.Changes = append(h.Changes, world.Change{At: 50 * time.Second, What: world.Viewed{Observer: 1, Subject: 2, Sight: world.Alive}})
	var last string
	for _, c := range storyOf(h).Data.Changes {
		if c.See != nil && c.See.By == 1 && c.See.Of == 2 {
			last += c.See.Is + " "
		}
	}
	require.Equal(t, "some failed some ", last)
}
