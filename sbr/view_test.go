package sbr_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// viewFrom builds a view from words such as "a b:leaving c:up!" (an exclamation mark: unreachable; without a
// status: up). The first member looks. Addresses go by the alphabet, ages by the place in the text: the first
// is the oldest.
func viewFrom(words string, reports ...sbr.Report) sbr.View {
	var members []sbr.Member
	for i, word := range strings.Fields(words) {
		word, unreachable := strings.CutSuffix(word, "!")
		name, status, _ := strings.Cut(word, ":")
		s, ok := sbr.ParseStatus(status)
		if !ok {
			s = sbr.Up
		}
		members = append(members, sbr.Member{
			ID: sbr.ID(name), Name: name, Addr: name + ":7946", Born: int64(i + 1), Status: s,
			Unreachable: unreachable,
		})
	}
	self := sbr.ID("")
	if len(members) > 0 {
		self = members[0].ID
	}
	return sbr.NewView(self, members, reports, nil)
}

func report(observer, subject sbr.ID) sbr.Report {
	return sbr.Report{Observer: observer, Subject: subject}
}

func idsOf(members []sbr.Member) (ids []sbr.ID) {
	for _, m := range members {
		ids = append(ids, m.ID)
	}
	return ids
}

func TestNewView_OrdersACopy(t *testing.T) {
	members := []sbr.Member{
		{ID: "6", Name: "hh"}, {ID: "5", Name: "b"}, {ID: "4", Name: "a"}, // without an address the name is the host
		{ID: "3", Addr: "h:10000"}, {ID: "2", Addr: "h:9000", Name: "x"}, {ID: "1", Addr: "h:9000", Name: "x"},
		{ID: "0", Addr: "i"},
	}
	before := slices.Clone(members)
	v := sbr.NewView("0", members, nil, nil)
	require.Equal(t, []sbr.ID{"4", "5", "1", "2", "3", "6", "0"}, idsOf(v.Members))
	require.Equal(t, before, members, "the caller's slice is left alone")
	members[0].ID = "changed"
	require.NotContains(t, idsOf(v.Members), sbr.ID("changed"))
}

func TestView_CountsBaseMembersWithTheRole(t *testing.T) {
	v := viewFrom("a b:joining c:weakly-up d:leaving e:exiting f:down g! h:joining! i:weakly-up! j:leaving! k:exiting! l:down!")
	here, there := v.Count("")
	require.Equal(t, sbr.Count{Up: 1, Leaving: 1, Joining: 2}, here)
	require.Equal(t, here, there)
	require.Equal(t, 2, here.Base())
	here, there = v.Count("db")
	require.Zero(t, here)
	require.Zero(t, there)
	v.Members[0].Roles = []string{"web", "db"}
	here, _ = v.Count("db")
	require.Equal(t, sbr.Count{Up: 1}, here)
}

func TestView_LowestAndOldest(t *testing.T) {
	v := viewFrom("c:joining d b:exiting a:leaving! e")
	require.Equal(t, sbr.ID("a"), v.Lowest("").ID)
	require.Equal(t, sbr.ID("d"), v.Oldest("").ID)
	require.Equal(t, sbr.ID("a"), v.Lowest("", sbr.Leaving).ID)
	require.Equal(t, sbr.ID("d"), v.Lowest("", sbr.Up).ID)
	require.Equal(t, sbr.ID("c"), v.Oldest("", sbr.Joining, sbr.Up).ID)
	require.Nil(t, v.Lowest("db"))
	require.Nil(t, v.Oldest("db"))

	tie := viewFrom("b a c")
	for i := range tie.Members {
		tie.Members[i].Born = 7
	}
	require.Equal(t, sbr.ID("a"), tie.Oldest("").ID, "a tie goes by address")
	tie.Members[2].Born = -7
	require.Equal(t, sbr.ID("c"), tie.Oldest("").ID, "smaller is older, also below zero")
	tie.Members[2].Born = 0
	require.Equal(t, sbr.ID("a"), tie.Oldest("").ID, "without a birth a member is the youngest")
	tie.Members[0].Born, tie.Members[1].Born = 0, 0
	require.Equal(t, sbr.ID("a"), tie.Oldest("").ID)
}

func TestView_Leader(t *testing.T) {
	for _, c := range []struct {
		name, view, leader string
		responsible        bool
	}{
		{"the lowest address leads", "a b c", "a", true},
		{"somebody else leads", "b a c", "a", false},
		{"an unreachable member does not lead", "b a! c", "b", true},
		{"a leaving member leads", "a:leaving b", "a", true},
		{"a joining member does not lead while one is up", "b a:joining", "b", true},
		{"an exiting member does not lead while one is up", "b a:exiting", "b", true},
		{"a downed member never leads", "a:down", "", false},
		{"nobody is up: weakly-up first", "c:weakly-up b:joining a:exiting", "c", true},
		{"nobody is up: then joining", "b:joining a:exiting", "b", false},
		{"nobody is up: then exiting", "a:exiting b:down", "a", true},
		{"nobody is up: of one status by address", "b:weakly-up a:weakly-up", "a", false},
		{"self counts as reachable", "a! b!", "a", true},
		{"an empty view", "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := viewFrom(c.view)
			leader := ""
			if l := v.Leader(); l != nil {
				leader = string(l.ID)
			}
			require.Equal(t, c.leader, leader)
			require.Equal(t, c.responsible, v.Responsible())
		})
	}
}

func ExampleView_Count() {
	v := viewFrom("n1 n2 n3! n4:leaving! n5:joining!")
	here, there := v.Count("")
	fmt.Println(here.Base(), "of", here.Base()+there.Base(), "counted members are reachable")
	// Output: 2 of 4 counted members are reachable
}
