//go:build linux

package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func entry(token uint64, holder string, v *sbr.Verdict) Entry {
	return Entry{Seen: noon, Written: noon, Holder: holder, Token: token, Verdict: v}
}

func verdict(token uint64, by sbr.ID, up, down []sbr.ID) *sbr.Verdict {
	return &sbr.Verdict{Token: token, DecidedBy: by, Survivors: up, Down: down}
}

func TestVerifyChain(t *testing.T) {
	ab, c := []sbr.ID{"a", "b"}, []sbr.ID{"c"}
	first := verdict(1, "a", ab, c)
	for _, tc := range []struct {
		name    string
		entries []Entry
		want    string
	}{
		{"nothing", nil, ""},
		{"won and released", []Entry{entry(1, "a", first), entry(1, "", first)}, ""},
		{"the next verdict", []Entry{entry(1, "a", first), entry(2, "b", verdict(2, "b", []sbr.ID{"b", "new"}, []sbr.ID{"a"}))}, ""},
		{"a token is left out", []Entry{entry(2, "a", verdict(2, "a", ab, c))}, "from token 0 to 2"},
		{"a token goes back", []Entry{entry(1, "a", first), entry(0, "a", nil)}, "from token 1 to 0"},
		{"two holders of a token", []Entry{entry(1, "a", first), entry(1, "b", first)}, "b became the holder under the token 1 of a"},
		{"the downed holds it", []Entry{entry(1, "a", first), entry(2, "c", verdict(2, "c", []sbr.ID{"a"}, []sbr.ID{"b"}))}, "c holds the lease under token 2 although verdict 1 downed it"},
		{"the downed survives", []Entry{entry(1, "a", first), entry(2, "a", verdict(2, "a", []sbr.ID{"a", "c"}, []sbr.ID{"b"}))}, "verdict 2 keeps c, which verdict 1 downed"},
		{"nobody is downed", []Entry{entry(1, "a", verdict(1, "a", ab, nil))}, "verdict 1 downs nobody"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := verifyChain(tc.entries, 0)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// Where the store was made to forget, the record may vanish or go back once for each time.
func TestVerifyChain_OfAStoreThatForgets(t *testing.T) {
	ab, c := []sbr.ID{"a", "b"}, []sbr.ID{"c"}
	one := entry(1, "a", verdict(1, "a", ab, c))
	two := entry(2, "b", verdict(2, "b", []sbr.ID{"b", "new"}, []sbr.ID{"a"}))
	three := entry(3, "b", verdict(3, "b", []sbr.ID{"b"}, []sbr.ID{"new"}))
	gone := Entry{Seen: noon}
	for _, tc := range []struct {
		name      string
		forgotten int
		entries   []Entry
		want      string
	}{
		{"deleted and told again", 1, []Entry{one, two, gone, two}, ""},
		{"deleted, and nobody had done it", 0, []Entry{one, two, gone, two}, "from token 2 to 0"},
		{"restored and told again", 1, []Entry{one, two, one, two, three}, ""},
		{"restored twice", 2, []Entry{one, two, one, two, gone, two}, ""},
		{"restored once, and once more", 1, []Entry{one, two, one, two, one}, "from token 2 to 1"},
		{"the next verdict follows what was restored", 1, []Entry{one, two, one, three}, ""},
		{"another first verdict", 1, []Entry{one, gone, entry(1, "c", verdict(1, "c", c, ab))}, "two verdicts under token 1: a downed [c], and c downed [a b]"},
		{"a token is left out", 1, []Entry{one, gone, three}, "from token 0 to 3"},
		{"the downed goes on", 1, []Entry{one, gone, one, entry(2, "c", verdict(2, "c", []sbr.ID{"c"}, ab))}, "verdict 2 keeps c, which verdict 1 downed"},
		{"the holder of the older record was downed since", 1, []Entry{one, two, one}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := verifyChain(tc.entries, tc.forgotten)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestChain_VerdictsAreCountedOnce(t *testing.T) {
	var chain Chain
	v := verdict(1, "a", []sbr.ID{"a"}, []sbr.ID{"b"})
	for _, e := range []Entry{entry(1, "a", v), entry(1, "a", v), {Seen: noon}, entry(1, "a", v)} {
		chain.add(e)
	}
	require.Len(t, chain.Entries(), 3, "what says the same is one state")
	require.Len(t, chain.Verdicts(), 1)
	require.ErrorIs(t, chain.Verify(), ErrBroken)
	chain.forget()
	require.NoError(t, chain.Verify())
}

func TestReturned(t *testing.T) {
	downs := map[string]time.Time{"c#1": noon}
	at := func(after time.Duration, incarnation string, state sbr.State, up ...string) []sample {
		return []sample{{asked: noon.Add(after), member: "x", incarnation: incarnation, state: state, up: up}}
	}
	for _, tc := range []struct {
		name    string
		samples []sample
		want    string
	}{
		{"before", at(-time.Second, "c#1", sbr.StateUp), ""},
		{"it says that it is down", at(time.Second, "c#1", sbr.StateDown), ""},
		{"it works again", at(time.Second, "c#1", sbr.StateUp), "c#1 was down at 12:00:00.000 and is up"},
		{"a new incarnation", at(time.Second, "c#2", sbr.StateUp, "c#2"), ""},
		{"the others find out", at(10*time.Second, "a#1", sbr.StateUp, "a#1", "c#1"), ""},
		{"the others take it for a member", at(time.Minute, "a#1", sbr.StateUp, "a#1", "c#1"), "x takes it for a member"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := returned(tc.samples, downs)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestDoubleActive_FromTheWriteToTheHook(t *testing.T) {
	verdicts := []Entry{entry(1, "a", verdict(1, "a", []sbr.ID{"a"}, []sbr.ID{"b", "c"}))}
	downs := []Down{
		{Member: "b", Incarnation: "b", At: noon.Add(40 * time.Millisecond)},
		{Member: "c", Incarnation: "c", At: noon.Add(-time.Second)},
		{Member: "d", Incarnation: "d", At: noon},
	}
	all := doubleActive(verdicts, downs)
	require.Len(t, all, 2, "no verdict names d")
	require.Equal(t, 40*time.Millisecond, all[0].For)
	require.Zero(t, all[1].For, "it was down before the verdict")
}

func TestParseHook(t *testing.T) {
	h, err := parseHook("down\t1795262400.000000500\tn4#x\t3\ta reason\twith a tab")
	require.NoError(t, err)
	require.Equal(t, Hook{Event: "down", At: time.Unix(1795262400, 500), Incarnation: "n4#x", Token: 3,
		Reason: "a reason\twith a tab"}, h)
	for _, bad := range []string{"", "down\tx.1\ti\t1\tr", "down\t1\ti\t1\tr", "down\t1.1\ti\tx\tr",
		"down\t1.1\ti\t1"} {
		_, err := parseHook(bad)
		require.Error(t, err, bad)
	}
}

func TestSettings_WithLeavesTheOriginalAlone(t *testing.T) {
	a := Fast()
	b := a.With("min-members", 3)
	require.NotContains(t, a.Resolver, "min-members")
	require.Equal(t, 3, b.Resolver["min-members"])
	require.Equal(t, map[string]any{"k": 1}, Settings{}.With("k", 1).Resolver)
}

// A lease that moves is one chain: a record with a mark is not the lease. A state that was skipped is dated
// all the same.
func TestChain_FollowsRecords(t *testing.T) {
	c := newChain()
	defer c.end()
	take := func(version lease.Version, r lease.Record) {
		c.takeRecord(&lease.Snapshot{Version: version, Record: r})
	}
	second := verdict(2, "a", []sbr.ID{"a"}, []sbr.ID{"b"})
	take("", lease.Record{}) // nothing was written yet
	take("1", lease.Record{Token: 1, Holder: "a"})
	take("2", lease.Record{Token: 1, Holder: "a", Moved: lease.Moved{Store: "new"}})
	take("1", lease.Record{Moved: lease.Moved{Store: "old", Reserved: true}})
	take("2", lease.Record{Token: 1, Holder: "a"})
	take("3", lease.Record{Token: 2, Acquired: noon, Verdict: second}) // it was held in between
	require.Len(t, c.Entries(), 2)
	require.NoError(t, c.Verify())
	require.Equal(t, noon, c.Verdicts()[0].Written)
	take("", lease.Record{})
	require.ErrorIs(t, c.Verify(), ErrBroken, "nobody said that it was deleted")
}
