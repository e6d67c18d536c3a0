package serf_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

func parse(t testing.TB, text string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("x.yaml", []byte(text))
	require.NoError(t, err)
	return s
}

const split = "run-for: 60s\nsteps: [{at: 10s, partition: [[n1, n2, n3], [n4, n5]]}]\n" +
	"cluster: {split-brain-resolver: {lease-majority: {acquire-lease-delay-for-minority: 10s}}}\n"

// Package scenario judges what the run shows.
func TestPlay_ShowsWhatIsJudged(t *testing.T) {
	o := play(t, parse(t, split), 1)
	require.NoError(t, o.err)
	require.Empty(t, o.broken)
	met := parse(t, split+"expect: {survivors: [n1, n2, n3], down: [n4, n5], lease-holder: n1, resolved-within: 40s, decisions: {n2: none}}")
	require.Empty(t, o.unmet(met, true))
	wrong := parse(t, split+"expect: {survivors: [n1, n2], down: [n4], lease-holder: n2, resolved-within: 1s, "+
		"decisions: {n1: down-all, n2: down-all}}")
	require.Len(t, o.unmet(wrong, true), 6)
	require.Len(t, o.unmet(wrong, false), 5)
}

// Two sides that are up at the end break S1, whatever the file expects; and they are no resolution.
func TestPlay_TwoSidesBreakAPromise(t *testing.T) {
	o := play(t, parse(t, strings.Replace(split, "60s", "20s", 1)), 1)
	require.NoError(t, o.err)
	require.Len(t, o.broken, 6, "three and two that are up and cannot reach each other")
	require.Contains(t, o.broken[0], "S1 broken")
	require.False(t, o.Measures.Settled)
}

// What the store must never hold is told at the moment it is written.
func TestPlay_RecordsAreChecked(t *testing.T) {
	verdict := func(token uint64, by sbr.ID, up, down []sbr.ID) lease.Record {
		return lease.Record{Holder: string(by), Token: token,
			Verdict: &sbr.Verdict{Token: token, DecidedBy: by, Survivors: up, Down: down}}
	}
	ab, c := []sbr.ID{"a", "b"}, []sbr.ID{"c"}
	first := verdict(1, "a", ab, c)
	stolen := first
	stolen.Holder = "b"
	for _, tc := range []struct {
		name string
		then lease.Record
		want string
	}{
		{"a heartbeat", first, ""},
		{"the next verdict", verdict(2, "b", []sbr.ID{"b"}, []sbr.ID{"a"}), ""},
		{"a newcomer survives", verdict(2, "b", []sbr.ID{"b", "new"}, []sbr.ID{"a"}), ""},
		{"two holders of one token", stolen, `S3 broken: b became the holder under the token 1 of "a"`},
		{"a token is left out", verdict(3, "a", ab, c), "token broken: from 1 to 3"},
		{"a token goes back", verdict(0, "a", ab, c), "token broken: from 1 to 0"},
		{"a downed member decides", verdict(2, "c", c, ab), "chain broken: c wrote verdict 2 although verdict 1 leaves it out"},
		{"a downed member survives", verdict(2, "a", []sbr.ID{"a", "c"}, []sbr.ID{"b"}), "chain broken: verdict 2 keeps c, which verdict 1 leaves out"},
		{"nobody is removed", verdict(2, "a", ab, nil), "chain broken: verdict 2 removes nobody"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPlayer(t.Context(), parse(t, split), 1)
			p.seen["new"] = 1
			p.store.Restore(first)
			require.Empty(t, p.promises.broken)
			p.store.Restore(tc.then)
			if tc.want == "" {
				require.Empty(t, p.promises.broken)
				return
			}
			require.NotEmpty(t, p.promises.broken)
			require.Contains(t, p.promises.broken[0], tc.want)
		})
	}
}

// A pause stops what others can notice of a process and what it does itself: Serf on it suspects nobody
// meanwhile, and when it goes on it is still there, if it was not missed for long.
func TestPlay_PausedProcessSuspectsNobody(t *testing.T) {
	s := parse(t, "run-for: 200s\nsteps: [{at: 10s, pause: n5, for: 120s}]\ncluster: {split-brain-resolver: {stable-after: 10h, down-all-when-unstable: off}}")
	o := play(t, s, 1, func(p *player) {
		p.after(125*time.Second, func() error {
			if n := p.alive(p.node("n1").proc); n != 4 {
				return fmt.Errorf("n1 sees %d members alive while n5 is paused", n)
			}
			if n := p.alive(p.node("n5").proc); n != 5 {
				return fmt.Errorf("the paused n5 sees %d members alive", n)
			}
			return nil
		})
	})
	require.NoError(t, o.err)
	require.Empty(t, o.broken)
	require.Len(t, o.Survivors, 5)
	require.True(t, o.Measures.Settled)
	require.Less(t, o.Measures.Resolved.Seconds(), 130.0, "n5 thinks that it is alone")
}
