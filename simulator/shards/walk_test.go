package shards_test

import (
	"context"
	"flag"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator/shards"
)

var (
	thorough = flag.Bool("thorough", false, "walk what takes some minutes, too")
	only     = flag.String("only", "", "make only the walks whose names match this regular expression")
)

// workers is how many walks are made at a time.
const workers = 2

// TestWalk_KeepsEveryPromise walks everything that shards.Normal allows.
func TestWalk_KeepsEveryPromise(t *testing.T) {
	all := shards.Normal()
	if *thorough {
		all = append(all, shards.Thorough()...)
	}
	pick, err := regexp.Compile(*only)
	require.NoError(t, err)
	all = slices.DeleteFunc(all, func(o shards.Options) bool { return !pick.MatchString(o.Name) })
	if testing.Short() {
		for k := range all {
			all[k].Limit = 4000
		}
	}
	reports, err := shards.Walks(context.Background(), all, workers)
	require.NoError(t, err)
	var sum shards.Counts
	for _, r := range reports {
		sum = sum.Add(r.Counts)
		t.Logf("%8d states, %9d edges, %6d starts, all again within %4v: %s", r.States, r.Edges, r.Starts, r.Slowest, r.Name)
		assert.True(t, r.Complete || testing.Short(), r.Name)
		for _, v := range r.Broken {
			assert.Fail(t, r.Name, v.String())
		}
	}
	t.Logf("%8d states, %9d edges, %6d starts, all again within %4v", sum.States, sum.Edges, sum.Starts, sum.Slowest)
}
