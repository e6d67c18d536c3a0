package sbr_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// What a verdict says of a member, and what that member may do in the next one.
func TestVerdict_Standing(t *testing.T) {
	whole := &sbr.Verdict{Token: 3, Survivors: []sbr.ID{"a", "b"}, Down: []sbr.ID{"c"}}
	part := &sbr.Verdict{Token: 3, Survivors: []sbr.ID{"a"}, Down: []sbr.ID{"c"}, Partial: true}
	for name, tc := range map[string]struct {
		verdict           *sbr.Verdict
		id                sbr.ID
		seen              uint64
		want              sbr.Standing
		mayWrite, mayStay bool
	}{
		"no verdict":                          {nil, "a", 0, sbr.Newer, true, true},
		"the zero verdict":                    {&sbr.Verdict{}, "a", 0, sbr.Newer, true, true},
		"listed":                              {whole, "b", 0, sbr.Survivor, true, true},
		"downed":                              {whole, "c", 0, sbr.Out, false, false},
		"not named":                           {whole, "d", 0, sbr.Out, false, false},
		"not named, had read an older one":    {whole, "d", 2, sbr.Out, false, false},
		"not named, had read this one":        {whole, "d", 3, sbr.Newer, true, true},
		"not named, had read a later one":     {whole, "d", 4, sbr.Newer, true, true},
		"in part: listed":                     {part, "a", 0, sbr.Survivor, true, true},
		"in part: downed":                     {part, "c", 0, sbr.Out, false, false},
		"in part: not named":                  {part, "b", 0, sbr.StandingUnknown, true, false},
		"in part: not named, had read it all": {part, "b", 3, sbr.Newer, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, tc.verdict.Standing(tc.id, tc.seen))
			require.Equal(t, tc.mayWrite, tc.verdict.MayWrite(tc.id, tc.seen))
			require.Equal(t, tc.mayStay, tc.verdict.Eligible(tc.id, tc.seen), "among the next survivors")
		})
	}
}

func TestVerdict_LeavesAndHeirs(t *testing.T) {
	t.Parallel()
	ids := func(text ...sbr.ID) []sbr.ID { return text }
	for name, c := range map[string]struct {
		v           sbr.Verdict
		gone, here  []sbr.ID
		left, heirs []sbr.ID
		remain      []sbr.ID
	}{
		"others remain, so nobody inherits": {
			v: sbr.Verdict{Token: 1, Survivors: ids("a", "b")}, gone: ids("b"), here: ids("a", "c"),
			left: ids("b"), remain: ids("a"),
		},
		"the last survivor hands the record to who is here": {
			v: sbr.Verdict{Token: 1, Survivors: ids("a", "b"), Left: ids("b")}, gone: ids("a"), here: ids("d", "c"),
			left: ids("b", "a"), heirs: ids("c", "d"), remain: ids("c", "d"),
		},
		"nobody is here": {
			v: sbr.Verdict{Token: 1, Survivors: ids("a", "b"), Left: ids("b")}, gone: ids("a"),
			left: ids("b", "a"),
		},
		"who left at the same moment inherits nothing": {
			v: sbr.Verdict{Token: 1, Survivors: ids("a"), Left: ids("c")}, gone: ids("a"), here: ids("c"),
			left: ids("c", "a"),
		},
		"the last heir hands it on": {
			v: sbr.Verdict{Token: 1, Survivors: ids("a"), Left: ids("a"), Heirs: ids("c")}, gone: ids("c"),
			here: ids("d"),
			left: ids("a", "c"), heirs: ids("d"), remain: ids("d"),
		},
		"a part of a verdict says nothing of who remains": {
			v: sbr.Verdict{Token: 1, Survivors: ids("a"), Partial: true}, gone: ids("a"), here: ids("c"),
			left: ids("a"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.True(t, c.v.Leave(c.gone, c.here))
			require.Equal(t, c.left, c.v.Left)
			require.Equal(t, c.heirs, c.v.Heirs)
			require.Equal(t, c.remain, c.v.Remaining())
			require.False(t, c.v.Leave(c.gone, nil), "the second time there is nothing to record")
		})
	}
}

// Members that were neither survivors nor heirs come and go for years under one verdict.
func TestVerdict_LeavesAreBounded(t *testing.T) {
	t.Parallel()
	v := sbr.Verdict{Token: 1, Survivors: []sbr.ID{"a", "b"}, Left: []sbr.ID{"b"}}
	for n := range 1000 {
		v.Leave([]sbr.ID{sbr.ID(fmt.Sprint(n))}, nil)
	}
	require.Len(t, v.Left, 65)
	require.Contains(t, v.Left, sbr.ID("b"), "a survivor's leave is kept")
	require.Equal(t, sbr.ID("999"), v.Left[64])
}
