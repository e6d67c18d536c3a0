package strategies_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// downs checks which members a strategy downs, with the safeguard off, in a view as the reference's tests set
// it up (see picture.gossip).
func downs(t *testing.T, s sbr.Strategy, p picture, side int, reports, want string) {
	t.Helper()
	v := p.gossip(side, reports)
	d := sbr.Decide(s, &v, sbr.Off)
	require.Equal(t, want, names(d.Down), "%s: %s", d.Final, d.Reason)
}

// The cases are those of the reference's unit tests. Brackets in the names surround indirectly connected
// members.
func TestConformance_IndirectlyConnectedKeepMajority(t *testing.T) {
	s := strategies.KeepMajority{}
	for _, c := range []struct{ name, members, reports, down string }{
		{"(A B)", "A B", "A<>B", "A B"},
		{"(A B) C: the fully connected one stays", "A B C", "A<>B", "A B"},
		{"(A B C), a cycle", "A B C", "A>B B>C C>A", "A B C"},
		{"(A D) (B C)", "A B C D", "A<>D B<>C", "A B C D"},
		{"(A B C) D E", "A B C D E", "A>B B>C C>A", "A B C"},
		{"A (B C) D (E F) G, two groups", "A B C D E F G", "B<>C E<>F", "B C E F"},
		{"(A B C), noticed through seen-by", "A B C", "A>B A>C", "A B C"},
		{"(A B C D) E, in part through seen-by", "A B C D E", "B<>C A>D", "A B C D"},
	} {
		t.Run(c.name, func(t *testing.T) { downs(t, s, draw(c.members), 0, c.reports, c.down) })
	}
	t.Run("(A B) D E | C: the crashed one goes down as well",
		func(t *testing.T) { downs(t, s, draw("A B D E | C"), 0, "A<>B", "A B C") })
	t.Run("A (B C) | D E", func(t *testing.T) {
		p := draw("A B C | D E")
		downs(t, s, p, 0, "B<>C", "B C D E")
		downs(t, s, p, 1, "", "D E")
		downs(t, s, p, 1, "B<>C", "B C D E")
	})
	t.Run("A (B C) | D E F G, on the smaller side", func(t *testing.T) {
		p := draw("A B C | D E F G")
		downs(t, s, p, 0, "B<>C", "A B C")
		downs(t, s, p, 1, "", "A B C")
		downs(t, s, p, 1, "B<>C", "A B C")
	})
	t.Run("A B C | (D E) F G, on the larger side", func(t *testing.T) {
		p := draw("A B C | D E F G")
		downs(t, s, p, 0, "", "A B C")
		downs(t, s, p, 0, "D<>E", "A B C D E")
		downs(t, s, p, 1, "D<>E", "A B C D E")
	})
	t.Run("A (B) C | D (E F) G, a cycle across the cut", func(t *testing.T) {
		p := draw("A B C | D E F G")
		downs(t, s, p, 0, "B>E E>F F>B", "A B C E F")
		downs(t, s, p, 1, "B>E E>F F>B", "A B C E F")
	})
	t.Run("A B C | (D E) (F G), noticed through seen-by", func(t *testing.T) {
		p := draw("A B C | D E F G")
		downs(t, s, p, 0, "", "A B C")
		downs(t, s, p, 1, "D>E G>F", "A B C D E F G")
	})
}

func TestConformance_IndirectlyConnectedOtherStrategies(t *testing.T) {
	oldest := strategies.KeepOldest{DownIfAlone: true}
	older := func(text string) picture { return draw(text).oldest("E D") }
	t.Run("keep-oldest: (A B) C", func(t *testing.T) { downs(t, oldest, older("A B C"), 0, "A<>B", "A B") })
	t.Run("keep-oldest: A (B C) | D E F G, on the younger side", func(t *testing.T) {
		downs(t, oldest, older("A B C | D E F G"), 0, "B<>C", "A B C")
		downs(t, oldest, older("A B C | D E F G"), 1, "B<>C", "A B C")
	})
	t.Run("keep-oldest: A B C | (D E) F G, on the older side", func(t *testing.T) {
		downs(t, oldest, older("A B C | D E F G"), 0, "D<>E", "A B C D E")
		downs(t, oldest, older("A B C | D E F G"), 1, "D<>E", "A B C D E")
	})
	t.Run("static-quorum: A (B C) | D E", func(t *testing.T) {
		downs(t, strategies.StaticQuorum{QuorumSize: 3}, draw("A B C | D E"), 0, "B<>C", "B C D E")
	})
	t.Run("down-all has no second pass",
		func(t *testing.T) { downs(t, strategies.DownAll{}, draw("A B C"), 0, "A<>B", "A B C") })

	lease := strategies.LeaseMajority{AcquireLeaseDelayForMinority: 2 * time.Second}
	t.Run("lease-majority: the nested answer is always down unreachable, also on a minority side",
		func(t *testing.T) {
			downs(t, lease, draw("A B C | D E"), 0, "B<>C", "B C D E")
			downs(t, lease, draw("A B C | D E F G"), 0, "B<>C", "B C D E F G")
			downs(t, lease, draw("A B C | D E"), 1, "B<>C", "A B C")
		})
	t.Run("lease-majority: A B C D | (E F), F is down already", func(t *testing.T) {
		downs(t, lease, draw("A B C D | El Fd"), 0, "E>F", "E")
		downs(t, lease, draw("A B C D | El Fd"), 1, "E>F", "A B C D E")
	})
}

// survivors plays a whole cluster: every side decides, and a member that its side's decision downs is gone.
func survivors(s sbr.Strategy, threshold float64, views ...sbr.View) string {
	out := map[sbr.ID]bool{}
	var all []sbr.Member
	for _, v := range views {
		all = v.Members
		for _, id := range sbr.Decide(s, &v, threshold).Down {
			out[id] = true
		}
	}
	var left []sbr.ID
	for _, m := range all {
		if !out[m.ID] {
			left = append(left, m.ID)
		}
	}
	return names(left)
}

func TestConformance_WholeClusters(t *testing.T) {
	s := strategies.KeepMajority{}
	three := draw("A B C").gossip(0, "B<>C")
	require.Equal(t, "A", survivors(s, sbr.Off, three),
		"3 members with a cut between 2 and 3: only one survives")
	require.Empty(t, survivors(s, 0.5, three), "with the safeguard at its default all go down")

	five := draw("A B C | D E")
	require.Equal(t, "A", survivors(s, sbr.Off, five.gossip(0, "B<>C"), five.gossip(1, "")),
		"123|45 and a cut between 2 and 3: only one survives")
	require.Empty(t, survivors(s, 0.5, five.gossip(0, "B<>C"), five.gossip(1, "")))
}
