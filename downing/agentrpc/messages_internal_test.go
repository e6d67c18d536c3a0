package agentrpc

import (
	"testing"

	"github.com/hashicorp/serf/client"
	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"
)

// Nobody reads: what does not fit is dropped, and the end is told.
func TestForward_WaitsForNobody(t *testing.T) {
	in, out := make(chan client.NodeResponse, 3), make(chan serf.NodeResponse, 1)
	for range 3 {
		in <- client.NodeResponse{From: "n2"}
	}
	close(in)
	forward(out, in, nil)
	require.Len(t, out, 1)
	<-out
	_, more := <-out
	require.False(t, more)
}

func TestDecode(t *testing.T) {
	for name, tc := range map[string]struct {
		id, name, payload any
		want              *record // nil: it makes no sense
	}{
		"a query":                   {uint64(7), "sbr", []byte("x"), &record{7, "sbr", []byte("x")}},
		"a query in texts":          {int64(7), []byte("sbr"), "x", &record{7, "sbr", []byte("x")}},
		"a query without a payload": {int64(7), "sbr", nil, &record{7, "sbr", []byte{}}},
		"a negative id":             {id: int64(-7), name: "sbr"},
		"an id of no number":        {id: "7", name: "sbr"},
		"a query without a name":    {id: int64(7)},
		"a payload of another kind": {id: int64(7), name: "sbr", payload: map[any]any{1: 2}},
		"nothing":                   {},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := decode(map[string]any{"ID": tc.id, "Name": tc.name, "Payload": tc.payload})
			require.Equal(t, tc.want != nil, ok)
			if ok {
				require.Equal(t, *tc.want, got)
			}
		})
	}
}
