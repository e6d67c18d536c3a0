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
		raw  map[string]any
		want *record // nil: it makes no sense
	}{
		"a query":                   {map[string]any{"ID": uint64(7), "Name": "sbr", "Payload": []byte("x")}, &record{7, "sbr", []byte("x")}},
		"a query in texts":          {map[string]any{"ID": int64(7), "Name": []byte("sbr"), "Payload": "x"}, &record{7, "sbr", []byte("x")}},
		"a query without a payload": {map[string]any{"ID": int64(7), "Name": "sbr", "Payload": nil}, &record{7, "sbr", []byte{}}},
		"a negative id":             {map[string]any{"ID": int64(-7), "Name": "sbr"}, nil},
		"an id of no number":        {map[string]any{"ID": "7", "Name": "sbr"}, nil},
		"a query without a name":    {map[string]any{"ID": int64(7)}, nil},
		"a payload of another kind": {map[string]any{"ID": int64(7), "Name": "sbr", "Payload": map[any]any{1: 2}}, nil},
		"nothing":                   {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := decode(tc.raw)
			require.Equal(t, tc.want != nil, ok)
			if ok {
				require.Equal(t, *tc.want, got)
			}
		})
	}
}
