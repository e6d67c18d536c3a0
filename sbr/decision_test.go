package sbr_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
)

var kinds = []sbr.Kind{
	sbr.None, sbr.DownUnreachable, sbr.DownReachable, sbr.DownAll, sbr.DownIndirectlyConnected, sbr.ReverseDownIndirectlyConnected,
	sbr.AcquireLeaseAndDownUnreachable, sbr.AcquireLeaseAndDownIndirectlyConnected,
}

// The names are a contract: configuration, logs, JSON and messages between members use them.
func TestKind_Names(t *testing.T) {
	var names []string
	for _, k := range kinds {
		names = append(names, k.String())
		parsed, ok := sbr.ParseKind(k.String())
		require.True(t, ok)
		require.Equal(t, k, parsed)
	}
	require.Equal(t, []string{
		"none", "down-unreachable", "down-reachable", "down-all", "down-indirectly-connected", "reverse-down-indirectly-connected",
		"acquire-lease-and-down-unreachable", "acquire-lease-and-down-indirectly-connected",
	}, names)
	require.Equal(t, "kind(200)", sbr.Kind(200).String())
	for _, text := range []string{"", "None", "down", "kind(200)"} {
		k, ok := sbr.ParseKind(text)
		require.False(t, ok, text)
		require.Equal(t, sbr.None, k)
	}
}

func TestKind_LeaseAndReverse(t *testing.T) {
	for _, k := range kinds {
		wantGranted, wantReverse := k, k
		switch k {
		case sbr.AcquireLeaseAndDownUnreachable:
			wantGranted, wantReverse = sbr.DownUnreachable, sbr.DownReachable
		case sbr.AcquireLeaseAndDownIndirectlyConnected:
			wantGranted, wantReverse = sbr.DownIndirectlyConnected, sbr.ReverseDownIndirectlyConnected
		}
		require.Equal(t, wantGranted, k.Granted(), k)
		require.Equal(t, wantReverse, k.Reverse(), k)
		require.Equal(t, wantGranted != k, k.NeedsLease(), k)
		require.False(t, k.Granted().NeedsLease() || k.Reverse().NeedsLease(), k)
		require.Equal(t, k.Indirect(), k.Granted().Indirect(), k)
		require.Equal(t, k.Indirect(), k.Reverse().Indirect(), k)
	}
}

func TestDecide_WhomEachKindDowns(t *testing.T) {
	const members = "a b:joining c:leaving d:exiting e:down f! g:weakly-up! h:leaving! i:exiting! j:down!"
	for kind, want := range map[sbr.Kind][]sbr.ID{
		sbr.None:                           nil,
		sbr.DownUnreachable:                {"f", "g", "h"},
		sbr.DownReachable:                  {"a", "b", "c"},
		sbr.DownAll:                        {"a", "b", "c", "f", "g", "h"},
		sbr.AcquireLeaseAndDownUnreachable: {"f", "g", "h"},
		sbr.Kind(200):                      {},
	} {
		v := viewFrom(members)
		d := sbr.Decide(&spy{answers: []sbr.Kind{kind}}, &v, 0)
		require.Equal(t, want, d.Down, kind)
		require.Equal(t, kind, d.Final)
	}
}

func TestDecide_PassesTheChoiceOn(t *testing.T) {
	v := viewFrom("a b!")
	choice := sbr.Choice{Kind: sbr.AcquireLeaseAndDownUnreachable, Delay: 2 * time.Second, Minority: true, Reason: "because"}
	d := sbr.Decide(fixed(choice), &v, 0.5)
	require.Equal(t, sbr.Decision{Choice: choice, Final: choice.Kind, Down: []sbr.ID{"b"}}, d)
}

type fixed sbr.Choice

func (f fixed) Decide(*sbr.View) sbr.Choice { return sbr.Choice(f) }

// doubtful speaks of indirectly connected members at first, and of nothing when it is asked about the rest.
type doubtful struct{ asked *int }

func (d doubtful) Decide(*sbr.View) sbr.Choice {
	*d.asked++
	if *d.asked%2 == 1 {
		return sbr.Choice{Kind: sbr.DownIndirectlyConnected, Reason: "somebody is indirectly connected"}
	}
	return sbr.Choice{Reason: "nothing is left to do"}
}

// A decision that is not None and still downs nobody is not carried out, and not made again while the view
// stays as it is.
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
