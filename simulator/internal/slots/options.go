package slots

import (
	"errors"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	core "github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

// MaxMembers is how many members a walk may have.
const MaxMembers = walk.MaxMembers

// Options say what may happen in a walk. Start from Default.
type Options struct {
	// Options are what all walks have. Notice is set by a walk.
	walk.Options
	// Handover has the times of the machines.
	Handover handover.Config
}

// Default returns four members with short times, to which nothing happens yet.
func Default() Options {
	o := walk.Default()
	return Options{Options: o, Handover: handover.Config{Rules: core.Rules{
		HandOverRetryInterval: 2 * o.Step, NumberOfRetries: 2, Margin: 4 * o.Step, Trust: 5 * o.Step, LeaseRetryInterval: 2 * o.Step}}}
}

// Validate reports every problem at once, one line each.
func (o *Options) Validate() error {
	h := o.Handover
	h.Self = name(0)
	return errors.Join(o.Options.Validate("slots", nil, []walk.Time{{Name: "HandOverRetryInterval", D: h.HandOverRetryInterval}, {Name: "Margin", D: h.Margin},
		{Name: "Trust", D: h.Trust}, {Name: "LeaseRetryInterval", D: h.LeaseRetryInterval}}), h.Validate())
}
