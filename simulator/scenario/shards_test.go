package scenario

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func shardsFile(shards, expect string) []byte {
	return []byte("cluster:\n  shards: " + shards + "\nrun-for: 60s\nexpect: {shards: " + expect + "}\n")
}

// What no shards can be is refused with its place in the file.
func TestShards_Refused(t *testing.T) {
	for name, tc := range map[string]struct{ shards, expect, says string }{
		"no type":            {"[{count: 3}]", "{}", "cluster.shards[0].type: is \"\""},
		"a bad type":         {"[{type: Or ders}]", "{}", "cluster.shards[0].type: is \"Or ders\""},
		"twice":              {"[{type: a}, {type: a}]", "{}", "cluster.shards[1].type: \"a\" is the type of others"},
		"too many types":     {"[{type: a}, {type: b}, {type: c}, {type: d}, {type: e}]", "{}", "are of 5 types: at most 4"},
		"too many":           {"[{type: a, count: 65}]", "{}", "cluster.shards[0].count: is 65"},
		"too often":          {"[{type: a, number-of-retries: 1001}]", "{}", "cluster.shards[0].number-of-retries"},
		"too quick":          {"[{type: a, reopened-after: 1ms}]", "{}", "cluster.shards[0].reopened-after: is 1ms"},
		"backwards":          {"[{type: a, stop-takes: -1s}]", "{}", "cluster.shards[0].stop-takes"},
		"an unknown type":    {"[{type: a}]", "{b: [n1]}", "no shards are of the type \"b\""},
		"an unknown member":  {"[{type: a}]", "{a: [n9]}", "expect.shards.a[0]"},
		"a member two times": {"[{type: a}]", "{a: [n1, n1]}", "expect.shards.a[1]: n1 is named twice"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("x.yaml", shardsFile(tc.shards, tc.expect))
			require.ErrorContains(t, err, tc.says)
		})
	}
}

// An expectation is about all shards of a type: each of the members named runs some, and none of them is
// left.
func TestShards_Expected(t *testing.T) {
	for name, tc := range map[string]struct{ expect, says string }{
		"met":              {"{a: [n1, n2, n3, n4, n5]}", ""},
		"elsewhere":        {"{a: [n1, n2]}", "shards: a: expected on [n1 n2], found on [n1 n2 n3 n4 n5]"},
		"nowhere expected": {"{a: []}", "shards: a: expected on [], found on [n1 n2 n3 n4 n5]"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Parse("x.yaml", shardsFile("[{type: a, count: 20}]", tc.expect))
			require.NoError(t, err)
			r := Judge(s, 1)
			require.Equal(t, 20, r.Shards[0].Running)
			require.Equal(t, 1, r.Shards[0].Coordinators)
			if tc.says == "" {
				require.Empty(t, r.Failures)
			} else {
				require.Equal(t, []string{tc.says}, r.Failures)
			}
		})
	}
	some := []ShardsResult{{Type: "a", Shards: 3, Running: 2, On: []string{"n1"}}}
	e := Expect{Shards: map[string][]string{"a": {"n1"}}}
	require.Equal(t, []string{"shards: a: only 2 of 3 run"}, e.misplaced(&Result{Shards: some}))
}
