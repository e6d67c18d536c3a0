package downing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Real Serf nodes with Serf's default LAN settings are cut in two or three; exactly one side survives.
func TestSplit_ExactlyOneSideSurvives(t *testing.T) {
	for _, tc := range []struct {
		name   string
		nodes  int
		groups [][]string
	}{
		{"3|2", 5, [][]string{{"n1", "n2", "n3"}, {"n4", "n5"}}},
		{"4|1", 5, [][]string{{"n1", "n2", "n3", "n4"}, {"n5"}}},
		{"1|4 with the leader alone", 5, [][]string{{"n1"}, {"n2", "n3", "n4", "n5"}}},
		{"2|2|1", 5, [][]string{{"n1", "n2"}, {"n3", "n4"}, {"n5"}}},
		{"9|1", 10, [][]string{{"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9"}, {"n10"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtual(t, nil, func(t *testing.T, c *cluster) {
				c.Form(tc.nodes)
				require.NoError(t, c.Net.Partition(tc.groups...))
				cut := time.Now()
				c.requireOneSide(tc.groups, 2*time.Minute)
				t.Logf("resolved after %v, up: %v", time.Since(cut), c.Up())
				time.Sleep(3 * time.Minute)
				c.Net.Heal()
				time.Sleep(2 * time.Minute)
				c.requireOneSide(tc.groups, time.Second)
			})
		})
	}
}

// requireOneSide waits until the members that are up are exactly one of the sides.
func (c *cluster) requireOneSide(groups [][]string, within time.Duration) {
	c.t.Helper()
	c.Eventually(within, "the members that are up are no side", func() bool {
		up := c.Up()
		for _, g := range groups {
			if equalSets(up, g) {
				return true
			}
		}
		return false
	})
}

func equalSets(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	in := make(map[string]bool)
	for _, x := range a {
		in[x] = true
	}
	for _, x := range b {
		if !in[x] {
			return false
		}
	}
	return true
}
