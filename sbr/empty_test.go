package sbr_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// doubtful speaks of indirectly connected members at first, and of nothing when it is asked about the rest.
type doubtful struct{ asked *int }

func (d doubtful) Decide(*sbr.View) sbr.Choice {
	*d.asked++
	if *d.asked%2 == 1 {
		return sbr.Choice{Kind: sbr.DownIndirectlyConnected, Reason: "somebody is indirectly connected"}
	}
	return sbr.Choice{Reason: "nothing is left to do"}
}

// A decision that is not None and still downs nobody is not carried out, and not made again while the view stays as it is.
func TestDecide_ADecisionThatDownsNobodyDoesNothing(t *testing.T) {
	asked := 0
	r, err := sbr.New(sbr.DefaultConfig(), doubtful{&asked}, numbered(0), 0)
	require.NoError(t, err)
	for i := range 3 {
		r.Step(0, sbr.MemberSeen{Member: numbered(i)})
	}
	r.Tick(5 * time.Second)
	r.Step(10*time.Second, sbr.Reachability{ID: numbered(2).ID, Unreachable: true})
	require.Empty(t, r.Tick(30*time.Second))
	require.Equal(t, 2, asked, "both passes")
	require.Empty(t, r.Tick(time.Hour))
	require.Equal(t, 2, asked)
	_, due := r.NextDeadline()
	require.False(t, due)
}
