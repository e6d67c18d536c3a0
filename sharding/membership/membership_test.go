package membership_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sharding/membership"
)

func TestView_Peer(t *testing.T) {
	v := membership.View{Peers: []membership.Peer{{ID: "a"}, {ID: "b", Down: true}}}
	require.True(t, v.Peer("b").Down)
	require.Nil(t, v.Peer("c"))
}

func TestView_AppendState(t *testing.T) {
	v := membership.View{Armed: true, Sure: time.Second, Peers: []membership.Peer{{ID: "a", Candidate: true}}}
	later := v
	later.Sure += time.Hour
	require.Equal(t, v.AppendState(nil, 0), later.AppendState(nil, time.Hour), "times are relative")
	other := v
	other.Peers = []membership.Peer{{ID: "a", Leaving: true}}
	require.NotEqual(t, v.AppendState(nil, 0), other.AppendState(nil, 0))
}
