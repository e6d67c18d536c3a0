package sbr_test

import (
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
