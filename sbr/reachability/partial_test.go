package reachability_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// shapes are cuts that are not clean, among n members by their numbers.
var shapes = map[string]func(n int, r *rand.Rand) func(a, b int) bool{
	"two links": func(int, *rand.Rand) func(a, b int) bool {
		return func(a, b int) bool { return min(a, b) == 0 && max(a, b) == 9 || min(a, b) == 1 && max(a, b) == 8 }
	},
	"bridge": func(n int, _ *rand.Rand) func(a, b int) bool {
		return func(a, b int) bool { return min(a, b) < n/2 && max(a, b) > n/2 }
	},
	"ring": func(n int, _ *rand.Rand) func(a, b int) bool {
		return func(a, b int) bool { d := max(a, b) - min(a, b); return d != 1 && d != n-1 }
	},
	"star": func(int, *rand.Rand) func(a, b int) bool {
		return func(a, b int) bool { return min(a, b) > 0 }
	},
	"random": func(n int, r *rand.Rand) func(a, b int) bool {
		cut := make(map[[2]int]bool)
		for i := range n {
			for j := range i {
				cut[[2]int{j, i}] = r.Float64() < 0.3
			}
		}
		return func(a, b int) bool { return cut[[2]int{min(a, b), max(a, b)}] }
	},
}

// Whatever the shape of the cut, every member knows every broken link before stable-after is over, and all
// choose the same group. So only its first member in address order asks for the lease at once.
func TestTracker_EveryBrokenLinkIsKnown(t *testing.T) {
	t.Parallel()
	for name, shape := range shapes {
		for _, n := range []int{12, 20, 40} {
			t.Run(fmt.Sprintf("%s, %d members", name, n), func(t *testing.T) {
				t.Parallel()
				w, cut := newWorld(n), shape(n, rand.New(rand.NewPCG(uint64(n), 1)))
				broken := 0
				for a := range n {
					for b := range n {
						if a != b && cut(a, b) {
							broken++
						}
					}
				}
				number := make(map[sbr.ID]int)
				for i, id := range w.ids {
					number[id] = i
				}
				for range 3 {
					w.round()
				}
				w.linked = func(a, b sbr.ID) bool { return a == b || !cut(number[a], number[b]) }
				for range 15 {
					w.round()
				}
				var group []sbr.ID
				for _, id := range w.ids {
					require.Len(t, w.opinions[id].Reports, broken, "%s", id)
					v := w.view(id)
					g := v.LargestGroup("")
					if group == nil {
						group = g.Members
					}
					require.Equal(t, group, g.Members, "%s", id)
				}
			})
		}
	}
}

// view is what a member sees; addresses go by the numbers of the members.
func (w *world) view(id sbr.ID) sbr.View {
	members := make([]sbr.Member, len(w.ids))
	for i, x := range w.ids {
		members[i] = sbr.Member{ID: x, Addr: fmt.Sprintf("n:%d", i+1), Status: sbr.Up, Unreachable: w.views[id][x]}
	}
	return sbr.NewView(id, members, w.opinions[id].Reports, nil)
}

// In peace one or two members more than the neighbours are probed in a round, each pair from one end. So a
// single broken link, which Serf hides, is known after a turn around half of the ring.
func TestTracker_OneBrokenLinkIsFoundBySweeping(t *testing.T) {
	t.Parallel()
	for _, n := range []int{12, 20, 50, 100} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(n), 1))
			for range 3 {
				w := newWorld(n)
				pair := r.Perm(n)[:2]
				a, b := w.ids[pair[0]], w.ids[pair[1]]
				for range 1 + r.IntN(5) {
					w.round()
				}
				require.LessOrEqual(t, w.probes, w.cfg.Neighbours+2)
				w.linked = func(x, y sbr.ID) bool { return !(x == a && y == b) && !(x == b && y == a) }
				// Half of the ring at three members in two rounds; or three probes of a neighbour.
				w.roundsUntil(t, max(n/2-w.cfg.Neighbours, 0)*2/3+5, func() bool {
					return !slices.ContainsFunc(w.ids, func(id sbr.ID) bool { return len(w.sees(id)) != 2-own(id, a, b) })
				})
			}
		})
	}
}

// own is one for the two ends: each misses the other one alone.
func own(id, a, b sbr.ID) int {
	if id == a || id == b {
		return 1
	}
	return 0
}

// What a downed member reports counts no longer, and neither does what makes others doubtful by it alone.
func TestTracker_DownedMembersAreNotHeard(t *testing.T) {
	t.Parallel()
	w := newWorld(5)
	a, b := w.ids[1], w.ids[3]
	w.linked = func(x, y sbr.ID) bool { return !(x == a && y == b) && !(x == b && y == a) }
	for range 8 {
		w.round()
	}
	require.Equal(t, []sbr.ID{a, b}, w.sees(w.ids[0]))
	for _, id := range w.ids {
		w.trackers[id].Downed(b)
	}
	w.round()
	require.Empty(t, w.sees(w.ids[0]))
	require.Empty(t, w.sees(a), "one member alone is no reason")
}
