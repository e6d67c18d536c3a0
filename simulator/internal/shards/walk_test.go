package shards_test

import (
	"testing"

	"github.com/serf-sbr/serf-sbr/simulator/internal/shards"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk/walktest"
)

var model = walktest.Model[shards.Options]{Walk: shards.Walk, Common: func(o *shards.Options) *walk.Options { return &o.Options }}

// TestWalk_KeepsEveryPromise walks everything that the plan allows; see package walktest for its flags.
func TestWalk_KeepsEveryPromise(t *testing.T) {
	model.Keeps(t, walktest.Plan[shards.Options]{Quick: shards.Quick(), Normal: shards.Normal(), Thorough: shards.Thorough(), Short: 4000, ShortQuick: 60_000})
}
