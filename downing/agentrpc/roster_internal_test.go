package agentrpc

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/serf/client"
	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"
)

// listOf reads "n1 n2:failed n3:alive/uid": name, status, uid tag.
func listOf(text string) (list []serf.Member) {
	for word := range strings.FieldsSeq(text) {
		word, uid, _ := strings.Cut(word, "/")
		name, status, _ := strings.Cut(word, ":")
		if status == "" {
			status = "alive"
		}
		list = append(list, serf.Member{Name: name, Addr: net.IPv4(10, 0, 0, name[len(name)-1]-'0'), Port: 7946,
			Status: statusOf(status), Tags: map[string]string{"uid": uid}})
	}
	return list
}

func textOf(list []serf.Member) string {
	var words []string
	for _, m := range list {
		word := m.Name
		if m.Status != serf.StatusAlive {
			word += ":" + m.Status.String()
		}
		if uid := m.Tags["uid"]; uid != "" {
			word += "/" + uid
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// Each step is a list that was read; one with a * is the first of a new connection, which may be to an agent
// that restarted.
func TestRoster(t *testing.T) {
	for rule, tc := range map[string]struct {
		steps []string
		want  string
	}{
		"what the agent lists is the truth":                    {steps: []string{"* n1 n2", "n1 n2:failed n3"}, want: "n1 n2:failed n3"},
		"who is reaped or pruned while the agent runs is gone": {steps: []string{"* n1 n2 n3:failed", "n1"}, want: "n1"},
		"who was alive before a restart is failed":             {steps: []string{"* n1 n2 n3", "* n1"}, want: "n1 n2:failed n3:failed"},
		"who was leaving is failed":                            {steps: []string{"* n1 n2:leaving", "* n1"}, want: "n1 n2:failed"},
		"who had failed is failed":                             {steps: []string{"* n1 n2:failed", "* n1"}, want: "n1 n2:failed"},
		"who had left is gone":                                 {steps: []string{"* n1 n2:left", "* n1"}, want: "n1"},
		"what is lost stays lost over more readings":           {steps: []string{"* n1 n2", "* n1", "n1", "n1"}, want: "n1 n2:failed"},
		"what is lost stays lost over a second restart":        {steps: []string{"* n1 n2", "* n1", "* n1"}, want: "n1 n2:failed"},
		"until it is listed again":                             {steps: []string{"* n1 n2", "* n1", "n1 n2", "n1"}, want: "n1"},
		"or listed as left":                                    {steps: []string{"* n1 n2", "* n1", "n1 n2:left"}, want: "n1 n2:left"},
		"or as another incarnation":                            {steps: []string{"* n1 n2/a", "* n1", "n1 n2/b"}, want: "n1 n2/b"},
		"it keeps the tags of its incarnation":                 {steps: []string{"* n1 n2/a", "* n1"}, want: "n1 n2:failed/a"},
		"a connection lost without a restart loses nobody":     {steps: []string{"* n1 n2 n3:failed", "* n1 n2 n3:failed"}, want: "n1 n2 n3:failed"},
		"the agent's own node is never lost":                   {steps: []string{"* n1 n2", "* n2"}, want: "n2"},
		"some are lost":                                        {steps: []string{"* n1 n2 n3", "* n1 n3"}, want: "n1 n3 n2:failed"},
	} {
		t.Run(rule, func(t *testing.T) {
			r := roster{self: "n1", lost: make(map[string]serf.Member)}
			for _, step := range tc.steps {
				list, first := strings.CutPrefix(step, "*")
				r.read(listOf(list), time.Time{}, first)
			}
			list, _, silence := r.members()
			require.NoError(t, silence)
			require.Equal(t, tc.want, textOf(list))
			require.True(t, r.blind(errors.New("gone")))
			require.False(t, r.blind(errors.New("gone")), "that is no news")
			list, _, silence = r.members()
			require.EqualError(t, silence, "gone")
			require.Equal(t, tc.want, textOf(list), "what was known is still told")
		})
	}
}

func TestRoster_Changed(t *testing.T) {
	r := roster{self: "n1", lost: make(map[string]serf.Member)}
	for _, tc := range []struct {
		list string
		want bool
	}{{"n1", true}, {"n1", false}, {"n1 n2", true}, {"n1 n2:failed", true}, {"n1 n2:failed", false},
		{"n1 n2:failed/a", true}, {"n1", true}} {
		require.Equal(t, tc.want, r.read(listOf(tc.list), time.Time{}, false), tc.list)
	}
	r.blind(errors.New("gone"))
	require.True(t, r.read(listOf("n1"), time.Time{}, true), "it is current again")
}

func TestRoster_Forget(t *testing.T) {
	r := roster{self: "n1", lost: make(map[string]serf.Member)}
	r.read(listOf("n1 n2 n3"), time.Time{}, true)
	require.False(t, r.forget("n2"), "it is listed")
	r.read(listOf("n1"), time.Time{}, true)
	require.True(t, r.forget("n2"))
	require.False(t, r.forget("n2"))
	list, _, _ := r.members()
	require.Equal(t, "n1 n3:failed", textOf(list))
}

// The engine writes into the list it was given.
func TestRoster_EachCallerHasItsOwnList(t *testing.T) {
	r := roster{self: "n1", lost: make(map[string]serf.Member)}
	r.read(listOf("n1 n2"), time.Time{}, true)
	mine, _, _ := r.members()
	mine[0].Tags, mine[1].Status = nil, serf.StatusFailed
	yours, _, _ := r.members()
	require.NotNil(t, yours[0].Tags)
	require.Equal(t, serf.StatusAlive, yours[1].Status)
}

func TestStatusOf_UnknownIsFailed(t *testing.T) {
	require.Equal(t, serf.StatusLeaving, statusOf("leaving"))
	require.Equal(t, serf.StatusNone, statusOf("none"))
	for _, text := range []string{"", "Alive", "suspect", "\xff"} {
		require.Equal(t, serf.StatusFailed, statusOf(text), text)
	}
}

func TestTagged(t *testing.T) {
	set, remove := map[string]string{"uid": "x", "cfg": "1"}, []string{"old"}
	for _, tc := range []struct {
		has  map[string]string
		want bool
	}{
		{nil, false}, {map[string]string{"uid": "x"}, false}, {map[string]string{"uid": "y", "cfg": "1"}, false},
		{map[string]string{"uid": "x", "cfg": "1", "old": ""}, false}, {map[string]string{"uid": "x", "cfg": "1", "role": "web"}, true},
	} {
		require.Equal(t, tc.want, tagged(tc.has, set, remove), tc.has)
	}
	require.True(t, tagged(map[string]string{"uid": "z"}, map[string]string{"uid": "z"}, []string{"uid"}),
		"what is set and removed at once is set")
}

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
