package sbr_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
)

var kinds = []sbr.Kind{
	sbr.None, sbr.DownUnreachable, sbr.DownReachable, sbr.DownAll, sbr.DownIndirectlyConnected,
	sbr.ReverseDownIndirectlyConnected,
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

func TestDecide_DownsInAddressOrder(t *testing.T) {
	v := viewFrom("d a! c! b!", report("d", "b"), report("b", "a"), report("a", "c"))
	require.Equal(t, []sbr.ID{"a", "b", "c"}, sbr.Decide(&spy{answers: []sbr.Kind{sbr.DownUnreachable}}, &v,
		sbr.Off).Down)
	s := &spy{answers: []sbr.Kind{sbr.DownIndirectlyConnected, sbr.DownAll}}
	require.Equal(t, []sbr.ID{"a", "b", "c", "d"}, sbr.Decide(s, &v, sbr.Off).Down)
}

func TestDecide_PassesTheChoiceOn(t *testing.T) {
	v := viewFrom("a b!")
	choice := sbr.Choice{Kind: sbr.AcquireLeaseAndDownUnreachable, Delay: 2 * time.Second, Minority: true,
		Reason: "because"}
	d := sbr.Decide(fixed(choice), &v, 0.5)
	require.Equal(t, sbr.Decision{Choice: choice, Final: choice.Kind, Down: []sbr.ID{"b"}}, d)
}

type fixed sbr.Choice

func (f fixed) Decide(*sbr.View) sbr.Choice { return sbr.Choice(f) }

func TestDecide_IndirectAgainInTheSecondPassDownsAll(t *testing.T) {
	for _, again := range []sbr.Kind{sbr.DownIndirectlyConnected, sbr.ReverseDownIndirectlyConnected,
		sbr.AcquireLeaseAndDownIndirectlyConnected} {
		v := viewFrom("a b! c! d! e:exiting", report("b", "c"), report("c", "b"))
		d := sbr.Decide(&spy{answers: []sbr.Kind{sbr.AcquireLeaseAndDownIndirectlyConnected, again}}, &v, sbr.Off)
		require.Equal(t, sbr.AcquireLeaseAndDownIndirectlyConnected, d.Kind)
		require.Equal(t, sbr.DownAll, d.Final)
		require.Equal(t, []sbr.ID{"a", "b", "c", "d"}, d.Down)
		require.Equal(t, "the test says so; the second pass found indirectly connected members again, so all go down", d.Reason)
	}
}

// A strategy may speak of indirectly connected members where there are none; that is its mistake, and no
// reason to panic.
func TestDecide_IndirectWhereNobodyIs(t *testing.T) {
	v := viewFrom("a b! c")
	d := sbr.Decide(&spy{answers: []sbr.Kind{sbr.DownIndirectlyConnected, sbr.DownUnreachable}}, &v, sbr.Off)
	require.Equal(t, []sbr.ID{"b"}, d.Down)
	whole := viewFrom("a b c")
	d = sbr.Decide(&spy{answers: []sbr.Kind{sbr.DownIndirectlyConnected}}, &whole, 0)
	require.Equal(t, sbr.DownIndirectlyConnected, d.Final)
	require.Empty(t, d.Down)
}

func TestDecide_Safeguard(t *testing.T) {
	two := []sbr.Report{report("b", "c"), report("c", "b")}
	final := func(members string, threshold float64) sbr.Decision {
		v := viewFrom(members, two...)
		return sbr.Decide(&spy{answers: []sbr.Kind{sbr.DownIndirectlyConnected}}, &v, threshold)
	}
	t.Run("below the share", func(t *testing.T) {
		d := final("a b c d e", 0.5)
		require.Equal(t, sbr.DownIndirectlyConnected, d.Final)
		require.Equal(t, "the test says so", d.Reason)
	})
	t.Run("at the share", func(t *testing.T) {
		d := final("a b c d", 0.5)
		require.Equal(t, sbr.DownIndirectlyConnected, d.Kind)
		require.Equal(t, sbr.DownAll, d.Final)
		require.Equal(t, []sbr.ID{"a", "b", "c", "d"}, d.Down)
		require.Equal(t, "the test says so; that is 2 of 4 members, at or above the limit of 0.5, so all go down",
			d.Reason)
	})
	t.Run("joining members go down but do not count as base", func(t *testing.T) {
		require.Equal(t, sbr.DownAll, final("a b c d:joining e:joining", 0.6).Final)
	})
	t.Run("off", func(t *testing.T) { require.Equal(t, sbr.DownIndirectlyConnected, final("b c", sbr.Off).Final) })
	t.Run("always", func(t *testing.T) { require.Equal(t, sbr.DownAll, final("a b c d e f g h", 0).Final) })
	t.Run("nobody goes down: there is nothing to guard", func(t *testing.T) {
		require.Equal(t, sbr.DownIndirectlyConnected, final("a b:exiting c:down", 0).Final)
	})
	t.Run("nobody is counted", func(t *testing.T) {
		require.Equal(t, sbr.DownIndirectlyConnected, final("b:joining c:joining", 0.5).Final)
	})
}

func TestDecision_Reversed(t *testing.T) {
	decide := func(v sbr.View, threshold float64, answers ...sbr.Kind) (sbr.Decision, sbr.Decision) {
		d := sbr.Decide(&spy{answers: answers}, &v, threshold)
		return d, d.Reversed(&v, threshold)
	}
	t.Run("of a clean cut: this side", func(t *testing.T) {
		d, r := decide(viewFrom("a b:joining c:exiting d!"), 0, sbr.AcquireLeaseAndDownUnreachable)
		require.Equal(t, []sbr.ID{"d"}, d.Down)
		require.Equal(t, sbr.DownReachable, r.Final)
		require.Equal(t, []sbr.ID{"a", "b"}, r.Down)
		require.Equal(t, d.Choice, r.Choice)
	})
	t.Run("of indirectly connected members: them and this side, not the other one", func(t *testing.T) {
		v := viewFrom("a b! c! d!", report("b", "c"), report("c", "b"), report("a", "d"))
		d, r := decide(v, sbr.Off, sbr.AcquireLeaseAndDownIndirectlyConnected, sbr.AcquireLeaseAndDownUnreachable)
		require.Equal(t, []sbr.ID{"b", "c", "d"}, d.Down)
		require.Equal(t, sbr.ReverseDownIndirectlyConnected, r.Final)
		require.Equal(t, []sbr.ID{"a", "b", "c"}, r.Down)
	})
	t.Run("the safeguard looks at the reverse as well", func(t *testing.T) {
		v := viewFrom("a b! c! d e f!", report("b", "c"), report("c", "b"))
		d, r := decide(v, 0.6, sbr.AcquireLeaseAndDownIndirectlyConnected, sbr.None)
		require.Equal(t, []sbr.ID{"b", "c"}, d.Down)
		require.Equal(t, sbr.DownAll, r.Final)
		require.Equal(t, []sbr.ID{"a", "b", "c", "d", "e", "f"}, r.Down)
	})
	t.Run("of what needs no lease: itself", func(t *testing.T) {
		for _, k := range []sbr.Kind{sbr.None, sbr.DownUnreachable, sbr.DownReachable, sbr.DownAll,
			sbr.DownIndirectlyConnected} {
			d, r := decide(viewFrom("a b!"), sbr.Off, k, sbr.None)
			require.Equal(t, d, r)
		}
	})
	t.Run("the decision itself stays", func(t *testing.T) {
		d, _ := decide(viewFrom("a b!"), 0, sbr.AcquireLeaseAndDownUnreachable)
		require.Equal(t, []sbr.ID{"b"}, d.Down)
		require.Equal(t, sbr.AcquireLeaseAndDownUnreachable, d.Final)
	})
}

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
