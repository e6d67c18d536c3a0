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
		want record
	}{
		"a member event":                 {map[string]any{"Event": "member-failed", "Members": []any{1}}, record{kind: memberEvent}},
		"its name as bytes":              {map[string]any{"Event": []byte("member-join")}, record{kind: memberEvent}},
		"a query":                        {map[string]any{"Event": "query", "ID": uint64(7), "Name": "sbr", "Payload": []byte("x")}, record{queryEvent, 7, "sbr", []byte("x")}},
		"a query in texts":               {map[string]any{"Event": []byte("query"), "ID": int64(7), "Name": []byte("sbr"), "Payload": "x"}, record{queryEvent, 7, "sbr", []byte("x")}},
		"a query without a payload":      {map[string]any{"Event": "query", "ID": int64(7), "Name": "sbr", "Payload": nil}, record{queryEvent, 7, "sbr", []byte{}}},
		"a negative id":                  {map[string]any{"Event": "query", "ID": int64(-7), "Name": "sbr"}, record{}},
		"an id of no number":             {map[string]any{"Event": "query", "ID": "7", "Name": "sbr"}, record{}},
		"a query without a name":         {map[string]any{"Event": "query", "ID": int64(7)}, record{}},
		"a payload of another kind":      {map[string]any{"Event": "query", "ID": int64(7), "Name": "sbr", "Payload": map[any]any{1: 2}}, record{}},
		"a user event":                   {map[string]any{"Event": "user", "Name": "sbr"}, record{}},
		"an event that is no text":       {map[string]any{"Event": 7}, record{}},
		"nothing":                        {nil, record{}},
		"a member event in wrong fields": {map[string]any{"Name": "member-join"}, record{}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, decode(tc.raw)) })
	}
}
