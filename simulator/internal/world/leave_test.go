package world

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
)

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
