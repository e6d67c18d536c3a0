package world

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	core "github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/lease"
)

// SlotOptions describe a slot: something that runs on one member only. Start from DefaultSlotOptions.
type SlotOptions struct {
	// Name must differ from those of all other slots. Required.
	Name string
	// Role: only nodes with it run the slot. Empty: all do.
	Role string
	// Rules are those of each member, but for Self, Trust and Gone. The times and faults of a lease are those
	// of the resolvers' lease.
	core.Rules
	// StopTakes is how long a run takes to end at most once it was asked to.
	StopTakes time.Duration
	// EndsAfter is about how long a run lasts before it ends by itself. Zero: it does not.
	EndsAfter time.Duration
	// WritesEvery is about how often a run writes to the resource that the slot protects.
	WritesEvery time.Duration
}

// DefaultSlotOptions returns the defaults of package handover, for runs that end within a second and write
// every five.
func DefaultSlotOptions() SlotOptions {
	return SlotOptions{Rules: core.DefaultRules(), StopTakes: time.Second, WritesEvery: 5 * time.Second}
}

// slot is one slot of the world, over all members.
type slot struct {
	SlotOptions
	w     *World
	index int             // among the world's, or the shards of its type
	rules handover.Config // Self and Born are each member's
	store store           // of its lease
	// coordinates are the shards that the slot's runs coordinate, shardOf the shards that the slot is one of;
	// nil: it is neither.
	coordinates, shardOf *shards

	runs []*run // in the order in which they were started
	live []*run // the runs that have not ended

	resource  resource
	disturbed time.Duration // when something happened last that concerns the slot alone
	outcome   SlotOutcome
	met       map[[2]*run]bool // runs that were seen to be active at once
}

// slotsOf makes the slots of a world.
func slotsOf(w *World) error {
	var errs []error
	for i, o := range w.opts.Slots {
		s := newSlot(w, i, o)
		errs = append(errs, s.validate())
		if o.Name == "" || slices.ContainsFunc(w.slots, func(t *slot) bool { return t.Name == o.Name }) {
			errs = append(errs, fmt.Errorf("the slot %q needs a name of its own", o.Name))
		}
		w.slots = append(w.slots, s)
	}
	errs = append(errs, shardsOf(w))
	if err := errors.Join(errs...); err != nil || len(w.slots) == 0 {
		return err
	}
	w.checks = append(w.checks, slotsLive{})
	return nil
}

func newSlot(w *World, index int, o SlotOptions) *slot {
	s := &slot{SlotOptions: o, w: w, index: index, outcome: SlotOutcome{Name: o.Name},
		met: make(map[[2]*run]bool)}
	s.store = store{w: w, slot: s}
	s.rules.Rules = o.Rules
	s.rules.Self, s.rules.Trust = "nobody", core.TrustFor(w.opts.Resolver.StableIn(1), o.Margin)
	return s
}

func (s *slot) validate() error {
	errs := []error{s.rules.Validate(s.String())}
	if s.StopTakes < 0 || s.EndsAfter < 0 || s.WritesEvery <= 0 {
		errs = append(errs, fmt.Errorf("%s: its times must not be negative, and it must write now and then: %+v",
			s, s.SlotOptions))
	}
	return errors.Join(errs...)
}

// String is for people.
func (s *slot) String() string {
	if s.shardOf != nil {
		return "the shard " + s.Name
	}
	return "the slot " + s.Name
}

// runsOn reports whether a node would run the slot.
func (s *slot) runsOn(n *Node) bool { return s.Role == "" || slices.Contains(n.Roles, s.Role) }

// committed notes a change of the slot's lease.
func (s *slot) committed(by *process, before, after *lease.Record) {
	if before.Token != after.Token || before.Holder != after.Holder {
		s.w.note(by, "lease", "%s: token %d, held by %s", s.Name, after.Token, cmp.Or(after.Holder, "nobody"))
	}
}

// SlotCounts count what became of a slot, or of several.
type SlotCounts struct {
	// Starts counts runs, HandedOver those that were handed over by the run before.
	Starts     int `json:"starts"`
	HandedOver int `json:"handed-over"`
	// Overlaps counts pairs of runs that were active at once although the assumptions of a slot without a
	// lease did not hold; those for which they did are violations. Why says how many of them came about for
	// which reason.
	Overlaps int            `json:"overlaps"`
	Why      map[string]int `json:"why,omitzero"`
	// Writes counts what arrived at the resource, Rejected what its fence kept out, Interleaved what came
	// from an older run after a write of a newer one: what would have done harm without a fence.
	Writes      int `json:"writes"`
	Rejected    int `json:"rejected"`
	Interleaved int `json:"interleaved"`
	// Unordered counts starts under a token that was not larger than all before, where no promise says that
	// it must be.
	Unordered int `json:"unordered"`
}

// Add adds others, of another slot or of another run.
func (c *SlotCounts) Add(o *SlotCounts) {
	c.Starts += o.Starts
	c.HandedOver += o.HandedOver
	c.Overlaps += o.Overlaps
	c.Writes += o.Writes
	c.Rejected += o.Rejected
	c.Interleaved += o.Interleaved
	c.Unordered += o.Unordered
	for why, n := range o.Why {
		c.because(why, n)
	}
}

func (c *SlotCounts) because(why string, n int) {
	if c.Why == nil {
		c.Why = make(map[string]int)
	}
	c.Why[why] += n
}

// SlotOutcome is what became of a slot.
type SlotOutcome struct {
	Name string `json:"name"`
	// On is the name of the node on which it runs at the end; empty: on none.
	On string `json:"on"`
	SlotCounts
}

// Slots returns what became of the slots, in the order of Options.Slots.
func (w *World) Slots() []SlotOutcome {
	all := make([]SlotOutcome, len(w.opts.Slots))
	for i, s := range w.slots[:len(all)] {
		all[i] = s.result()
	}
	return all
}

// result is the outcome so far, and where the slot runs now.
func (s *slot) result() SlotOutcome {
	o := s.outcome
	for _, r := range s.live {
		if r.active() && !r.asked {
			o.On = r.executor.p.node.Name
		}
	}
	return o
}
