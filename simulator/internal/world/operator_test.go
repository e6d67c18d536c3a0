package world

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// named is a healthy world of five that keeps names, as Serf does.
func named(t *testing.T, change func(o *Options)) *World {
	t.Helper()
	return healthy(t, func(o *Options) {
		if change != nil {
			change(o)
		}
	})
}

// unlistedBy are the members that a member lists no longer, but thinks may still run.
func unlistedBy(w *World, node int) (ids []sbr.ID) {
	s := w.nodes[node].proc.r.Snapshot()
	for i := range s.Members {
		if s.Members[i].Unlisted {
			ids = append(ids, s.Members[i].ID)
		}
	}
	return ids
}

// listed is how many others a process lists.
func listed(p *process) (n int) {
	for range p.others() {
		n++
	}
	return n
}

// An operator removes a member as soon as it is called failed; all whom the asked member reaches hear of it;
// nobody takes it for an end.
func TestForceLeave_RemovesWhoIsCalledFailed(t *testing.T) {
	w := named(t, nil)
	w.At(10*time.Second, func() { w.Partition([]int{0, 1, 2}, []int{3, 4}) })
	w.At(11*time.Second, func() { w.ForceLeave([]int{1, 3, 4}, []int{0}) }) // n2 is alive, and stays
	w.Run(11500 * time.Millisecond)
	require.Empty(t, unlistedBy(w, 0), "nobody is called failed yet")
	w.Run(18 * time.Second)
	for i := range 3 {
		require.ElementsMatch(t, []sbr.ID{"n4#1", "n5#1"}, unlistedBy(w, i), "n%d", i+1)
		require.Equal(t, sbr.StateSuspended, w.nodes[i].proc.r.State())
		require.Equal(t, 2, listed(w.nodes[i].proc), "the two others")
	}
	require.Empty(t, unlistedBy(w, 3), "the other side hears of nothing")
	require.Empty(t, w.Violations())
}

// Without others it is wherever they are called failed, on both sides; a heal then brings nobody together.
func TestForceLeave_EverywhereMakesTwoClustersThatDoNotLookForEachOther(t *testing.T) {
	w := named(t, func(o *Options) { o.Resolver.StableAfter = time.Hour })
	w.At(10*time.Second, func() { w.Partition([]int{0, 1, 2}, []int{3, 4}) })
	w.At(11*time.Second, func() { w.ForceLeave([]int{0, 1, 2, 3, 4}, nil) })
	w.At(30*time.Second, w.Heal)
	w.Run(5 * time.Minute)
	require.ElementsMatch(t, []sbr.ID{"n4#1", "n5#1"}, unlistedBy(w, 0))
	require.ElementsMatch(t, []sbr.ID{"n1#1", "n2#1", "n3#1"}, unlistedBy(w, 4))
	broken := w.FinishSafety()
	require.NotEmpty(t, broken)
	require.Equal(t, "n1#1 and n4#1 are both up, and the cluster of neither lists the other", broken[0].Text)
}

// A successor with its predecessor's state proves that it ended, whatever it is called; a successor without
// it proves nothing.
func TestRestart_ProvesThatThePredecessorEnded(t *testing.T) {
	for name, tc := range map[string]struct {
		as       string
		lost     bool
		unlisted []sbr.ID
		suspects int
	}{
		"with its state":                  {"n5", false, nil, 0},
		"under another name":              {"n9", false, nil, 0},
		"without its state":               {"n5", true, []sbr.ID{"n5#1"}, 1},
		"without both: still listed":      {"n9", true, nil, 1},
		"under the name of one that left": {"n3", false, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := named(t, func(o *Options) { o.Resolver.StableAfter = time.Hour })
			if tc.as == "n3" {
				w.At(5*time.Second, w.nodes[2].Leave)
			}
			w.At(10*time.Second, w.nodes[4].Crash)
			w.At(20*time.Second, func() { w.nodes[4].RestartAs(tc.as, tc.lost) })
			w.Run(time.Minute)
			require.Equal(t, tc.unlisted, unlistedBy(w, 0))
			require.Equal(t, tc.suspects, w.nodes[0].proc.r.Suspects())
			require.Equal(t, sbr.ID(tc.as+"#2"), w.nodes[4].proc.id)
			_, known := w.nodes[0].proc.r.Member(w.nodes[4].proc.id)
			require.True(t, known)
		})
	}
}

// No member takes a second member in under a name that it lists, alive or failed; once the first was removed
// it does.
func TestRestart_ASecondMemberOfOneNameWaitsUntilTheFirstIsRemoved(t *testing.T) {
	w := named(t, func(o *Options) { o.Resolver.StableAfter = time.Hour })
	w.At(10*time.Second, func() { w.Partition([]int{0, 1, 2, 4}, []int{3}) })
	w.At(20*time.Second, func() {
		w.nodes[4].Crash()
		w.nodes[4].RestartAs("n4", true)
	})
	w.Run(40 * time.Second)
	_, known := w.nodes[0].proc.r.Member("n4#2")
	require.False(t, known)
	w.At(41*time.Second, func() { w.ForceLeave([]int{3}, nil) })
	w.Run(2 * time.Minute) // memberlist must have forgotten the first as well
	_, known = w.nodes[0].proc.r.Member("n4#2")
	require.True(t, known)
	require.Contains(t, unlistedBy(w, 0), sbr.ID("n4#1"))
}

// A process that restarts in the middle of a cut still suspects whom its predecessor suspected; without its
// state it does not.
func TestRestart_RemembersUndecidedSuspects(t *testing.T) {
	for _, lost := range []bool{false, true} {
		w := named(t, func(o *Options) { o.Resolver.StableAfter = time.Hour })
		w.At(10*time.Second, func() { w.Partition([]int{0, 1, 2}, []int{3, 4}) })
		w.At(20*time.Second, func() {
			w.nodes[2].Crash()
			w.nodes[2].RestartAs("n3", lost)
		})
		w.Run(time.Minute)
		want := []sbr.ID{"n4#1", "n5#1"}
		if lost {
			want = nil
		}
		require.ElementsMatch(t, want, unlistedBy(w, 2))
	}
}

// Members that are asked to race in another's place, or are ordered, hear which members it suspects.
func TestMessages_CarrySuspects(t *testing.T) {
	w := named(t, nil)
	p, q := w.nodes[0].proc, w.nodes[1].proc
	w.At(10*time.Second, func() {
		p.ask(sbr.AskToRace{Targets: []sbr.ID{q.id}, Suspects: []sbr.ID{"x#1"}})
		p.step(sbr.Suspected{Members: []sbr.Member{{ID: "y#1", Name: "y"}}})
		p.tellOrder(sbr.TellOrder{Targets: []sbr.ID{w.nodes[2].proc.id},
			Order: sbr.Order{Kind: sbr.DownUnreachable, Reason: "x", Suspects: []sbr.ID{"y#1"}}})
	})
	w.Run(11 * time.Second)
	require.Contains(t, unlistedBy(w, 1), sbr.ID("x#1"))
	require.Contains(t, unlistedBy(w, 2), sbr.ID("y#1"))
}

// asked is what the trace says of operators' requests.
func asked(w *World) (lines []string) {
	for _, e := range w.Events() {
		if e.Kind == "request" {
			lines = append(lines, e.Node+": "+e.Detail)
		}
	}
	return lines
}

// What the driver refuses before the resolver hears of it: a second request, a leaving member, an unknown
// name; a member that does not run or stands still hears nothing.
func TestDownBy_Refused(t *testing.T) {
	w := named(t, nil)
	w.SetStore(StoreFault{Access: Silent}, 0)
	w.At(20*time.Second, func() {
		w.nodes[3].DownBy(w.nodes[0])
		w.nodes[4].DownBy(w.nodes[0])
		stranger := w.AddNode(NodeOptions{Name: "m1"})
		stranger.DownBy(w.nodes[1])
		w.nodes[1].DownBy(stranger)
		w.nodes[2].Pause(time.Second)
		w.nodes[1].DownBy(w.nodes[2])
		w.nodes[4].proc.resigned = true
		w.nodes[1].DownBy(w.nodes[4])
		w.nodes[4].proc.resigned = false
	})
	w.Run(3 * time.Minute)
	require.Equal(t, []string{
		"n1: to down n4#1", "n1: to down n5: refused: an earlier request is not decided yet",
		"n2: to down m1: refused: 0 members here are called so", ": to down n2: nobody answers on m1", ": to down n2: nobody answers on n3",
		"n5: to down n2: refused: this member leaves its cluster",
		"n1: held: the lease store gave no answer within 15s (no answer in time)",
	}, asked(w))
	require.Empty(t, w.Down())
	require.Empty(t, w.Finish(), w.Story())
}

// A request that is not answered is found at the end, and so is a race for the lease in peace that nobody
// asked for.
func TestDownBy_ChecksCanFail(t *testing.T) {
	w := named(t, nil)
	w.Run(20 * time.Second)
	w.nodes[0].proc.request = "n4#1"
	w.Run(time.Minute)
	require.Len(t, w.Finish(), 1)
	require.Equal(t, "n1#1 has not answered the operator who asked it to down n4#1", w.Violations()[0].Text)
	w = named(t, nil)
	w.Run(20 * time.Second)
	w.nodes[0].proc.step(sbr.DownRequested{ID: "n4#1"}) // no driver's
	w.Run(time.Minute)
	require.NotEmpty(t, w.Violations())
	require.Equal(t, "L3", w.Violations()[0].Promise)
}
