package downing

import (
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// sharing is an engine of a cluster of n members, as far as it puts them up, and what it puts up.
func sharing(n int) (*engine, *sbr.Snapshot) {
	e := &engine{life: &Lifecycle{}, members: newMembership("n000#u", reachable), lookedAt: time.Now()}
	s := &sbr.Snapshot{Self: "n000#u", State: sbr.StateUp}
	var list []serf.Member
	for i := range n {
		m := serf.Member{Name: fmt.Sprintf("n%03d", i), Tags: map[string]string{TagUID: "u", TagServes: "backup,reports"}, Status: serf.StatusAlive}
		list = append(list, m)
		s.Members = append(s.Members, memberOf(&m, sbr.Up))
	}
	e.members.look(0, list)
	return e, s
}

// In peace the members are compared and nothing is made: a cluster of 500 that idles pays no garbage for what runs on top.
func TestShare_MakesNothingInPeace(t *testing.T) {
	e, s := sharing(500)
	e.share(s, sbr.StateUp)
	require.Len(t, e.Peers().List, 500)
	require.Equal(t, []string{"backup", "reports"}, e.Peers().List[0].Serves)
	require.Zero(t, testing.AllocsPerRun(100, func() { e.share(s, sbr.StateUp) }))
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { e.Peers() }), 2.0, "a copy of the list, and one of its texts")
}

func BenchmarkShare500_InPeace(b *testing.B) {
	e, s := sharing(500)
	for b.Loop() {
		e.share(s, sbr.StateUp)
	}
}

func BenchmarkShare500_Changed(b *testing.B) {
	e, s := sharing(500)
	for b.Loop() {
		e.members.serves++
		e.share(s, sbr.StateUp)
	}
}

func BenchmarkPeers500(b *testing.B) {
	e, s := sharing(500)
	e.share(s, sbr.StateUp)
	for b.Loop() {
		e.Peers()
	}
}
