package slots_test

import (
	"testing"

	"github.com/serf-sbr/serf-sbr/simulator/internal/slots"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk/walktest"
)

var model = walktest.Model[slots.Options]{Walk: slots.Walk, Common: func(o *slots.Options) *walk.Options { return &o.Options }}

// TestWalk_KeepsEveryPromise walks everything that the plan allows; see package walktest for its flags.
func TestWalk_KeepsEveryPromise(t *testing.T) {
	model.Keeps(t, walktest.Plan[slots.Options]{Normal: slots.Normal(), Thorough: slots.Thorough(), Short: 20000})
}
