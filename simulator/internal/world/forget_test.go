package world

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// decidedOnce is a world in which n1 to n4 have downed n5, and nothing else is amiss.
func decidedOnce(t *testing.T) *World {
	t.Helper()
	w := named(t, nil)
	w.At(10*time.Second, func() { w.Partition([]int{0, 1, 2, 3}, []int{4}) })
	w.Run(2 * time.Minute)
	require.Equal(t, []string{"n5"}, w.Down())
	return w
}

// A deleted record is gone, a restored one is what it was; both are new writes to a client that holds an
// older version.
func TestForget_ChangesTheRecordAndItsVersion(t *testing.T) {
	w := decidedOnce(t)
	version, then := w.store.at(), w.Backup()
	require.Equal(t, uint64(1), w.store.record.Token)
	w.Forget()
	require.Zero(t, w.store.record.Token)
	require.Empty(t, w.store.at(), "there is no record")
	require.False(t, w.store.commit(w.nodes[0].proc, version, lease.Record{}),
		"a write over what was there before fails")
	w.Restore(then)
	require.Equal(t, uint64(1), w.store.record.Token)
	require.NotEqual(t, version, w.store.at())
}

// Telling the store again what it has forgotten breaks no rule of the chain, and adds nothing to it.
func TestForget_ToldAgainIsNoNewVerdict(t *testing.T) {
	w := decidedOnce(t)
	before := w.store.record
	w.Forget()
	again := before
	require.True(t, w.store.commit(w.nodes[0].proc, w.store.at(), again))
	require.Len(t, w.store.chain, 1)
	require.Nil(t, w.store.lost)
	require.Empty(t, w.Violations())
	w.Forget()
	other := before
	other.Verdict = &sbr.Verdict{Token: 1, Survivors: []sbr.ID{"n5#1"}, Down: []sbr.ID{"n1#1"}}
	require.True(t, w.store.commit(w.nodes[4].proc, w.store.at(), other))
	require.Len(t, w.store.chain, 2, "another verdict of that token is one of its own")
}

// The schedule that S1 excepts: no member that knew the verdict reached the store before others wrote the
// next one, and neither has met the other since.
func TestExcepted_IsOneScheduleOnly(t *testing.T) {
	winners, losers := []int{0, 1, 2, 3}, []sbr.ID{"n5#1", "n6#1"}
	next := &sbr.Verdict{Token: 1, Survivors: losers, Down: []sbr.ID{"n1#1"}, DecidedBy: "n5#1"}
	for name, tc := range map[string]struct {
		saw     bool // one of them saw what the store held before another verdict stood there
		after   func(w *World)
		excused bool
	}{
		"nobody could tell":              {false, nil, true},
		"somebody could tell":            {true, nil, false},
		"they reach the store since":     {false, func(w *World) { w.SetStore(StoreFault{}, 0) }, false},
		"they reach each other, no more": {false, func(w *World) { w.Heal() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := decidedOnce(t)
			n6 := w.AddNode(NodeOptions{})
			w.Partition([]int{0, 1, 2, 3}, []int{4, 5})
			w.newProcess(n6, sbr.Record{}).run() // of a part that never heard of the verdict
			w.SetStore(StoreFault{Access: Silent}, winners...)
			w.Forget()
			if tc.saw {
				w.store.witnessed(w.nodes[0].proc)
			}
			require.True(t, w.store.commit(n6.proc, w.store.at(),
				lease.Record{Holder: "n6#1", Token: 1, Verdict: next}))
			if tc.after != nil {
				tc.after(w)
			}
			w.violate("S1", "x")
			require.Equal(t, tc.excused, len(w.Excepted()) > 0, w.Violations())
			w.violate("S4", "y")
			require.NotEmpty(t, w.Violations(), "no other promise is excepted")
		})
	}
}

// A member that leaves in peace is recorded, and stands in no later verdict; in a cut it is not recorded.
func TestLeave_IsRecorded(t *testing.T) {
	w := decidedOnce(t)
	w.nodes[3].Leave()
	w.Run(w.now + 10*time.Second)
	require.Equal(t, []sbr.ID{"n4#1"}, w.store.record.Verdict.Left)
	require.EqualValues(t, 1, w.store.record.Token)
	require.Len(t, w.store.chain, 1)
	w.At(w.now+time.Second, func() { w.Partition([]int{0, 1}, []int{2, 3, 4}) })
	w.Run(w.now + 15*time.Second)
	w.nodes[2].Leave()
	w.Run(w.now + 2*time.Minute)
	require.Len(t, w.store.chain, 2)
	require.Equal(t, []sbr.ID{"n1#1", "n2#1"}, w.store.record.Verdict.Survivors)
	require.Empty(t, w.store.record.Verdict.Left)
	require.Empty(t, w.Violations())
}
