package world

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	"github.com/serf-sbr/serf-sbr/internal/shards/coordinator"
	"github.com/serf-sbr/serf-sbr/internal/shards/host"
	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/allocation"
)

// ShardsOptions describe shards of one type, which run on one member each. Start from DefaultShardsOptions.
type ShardsOptions struct {
	// SlotOptions are those of each shard; Name is the type. UseLease gives each of them a lease of its own,
	// and one to their coordinator.
	SlotOptions
	// Count is how many there are.
	Count int
	// ReopensAfter is about how long a member hosts shards before its manager is closed in good order, and
	// opened again by the same process. Zero: it stays open.
	ReopensAfter time.Duration
}

// DefaultShardsOptions are eight shards that are otherwise as DefaultSlotOptions say.
func DefaultShardsOptions() ShardsOptions {
	return ShardsOptions{SlotOptions: DefaultSlotOptions(), Count: 8}
}

// shards are those of one type, over all members.
type shards struct {
	ShardsOptions
	w     *World
	index int
	// coordSlot is the slot whose runs coordinate, slots are the shards themselves.
	coordSlot *slot
	slots     []*slot
	rules     host.Config // Self and Known are each member's
	alloc     *allocation.Allocator
	digest    uint64
	// resigned counts the coordinators that have ended of themselves.
	resigned int
}

// coordinatorStops is how long the run of a coordinator takes to end at most: as long as what drives it.
const coordinatorStops = 20 * time.Millisecond

// compactBits are those of a coordinator's token that count, as package sharding has them.
const compactBits = 29

// shardsOf makes the shards of a world. Their coordinators are slots.
func shardsOf(w *World) error {
	var errs []error
	for i, o := range w.opts.Shards {
		if o.Name == "" || slices.ContainsFunc(w.shards, func(s *shards) bool { return s.Name == o.Name }) ||
			o.ReopensAfter < 0 {
			errs = append(errs, fmt.Errorf("the shards %q need a name of their own, and no negative times: %+v",
				o.Name, o))
		}
		s, err := newShards(w, i, o)
		if errs = append(errs, err); err != nil {
			continue
		}
		w.slots = append(w.slots, s.coordSlot)
		w.shards = append(w.shards, s)
	}
	return errors.Join(errs...)
}

func newShards(w *World, index int, o ShardsOptions) (*shards, error) {
	s := &shards{ShardsOptions: o, w: w, index: index}
	names := make([]string, max(o.Count, 0))
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	slices.Sort(names)
	coord := o.SlotOptions
	coord.Name, coord.StopTakes, coord.EndsAfter = "shards."+o.Name, coordinatorStops, 0
	s.coordSlot = newSlot(w, len(w.slots), coord)
	s.coordSlot.rules.CounterBits, s.coordSlot.coordinates = compactBits, s
	errs := []error{s.coordSlot.validate()}
	for i, name := range names {
		each := o.SlotOptions
		each.Name = o.Name + "/" + name
		x := newSlot(w, i, each)
		x.shardOf = s
		s.slots = append(s.slots, x)
		errs = append(errs, x.validate())
	}
	var err error
	if o.Count > message.MaxShards {
		errs = append(errs, fmt.Errorf("shards: %s: there may be %d, not %d", o.Name, message.MaxShards, o.Count))
	}
	s.alloc, err = allocation.New(o.Name, names, allocation.DefaultConfig())
	errs = append(errs, err)
	s.digest = message.Digest(o.Name, names, o.UseLease)
	s.rules = host.Config{Rules: s.coordSlot.rules.Rules, Shards: o.Count, Digest: s.digest}
	return s, errors.Join(errs...)
}

// coordinator returns the machine of a run that has just begun.
func (s *shards) coordinator(self sbr.ID, term uint64, now time.Duration) *coordinator.Machine {
	rules := s.rules.Rules
	rules.Self = self
	return coordinator.New(coordinator.Config{
		Rules: rules, Term: term, Allocator: s.alloc, Digest: s.digest, AuditInterval: coordinator.AuditInterval,
	}, now)
}

// look is promise Y1 of all of them.
func (s *shards) look() {
	for _, x := range s.slots {
		x.look()
	}
}

// ShardsOutcome is what became of the shards of a type; its counts are those of all of them together.
type ShardsOutcome struct {
	Type string `json:"type"`
	// Shards is how many there are, Running how many of them run at the end, On the names of the nodes on
	// which they do, in order.
	Shards  int      `json:"shards"`
	Running int      `json:"running"`
	On      []string `json:"on"`
	// Coordinators counts the runs of the coordinator, Resigned those that ended because their term was too
	// small, or spent.
	Coordinators int `json:"coordinators"`
	Resigned     int `json:"resigned"`
	SlotCounts
}

// Shards returns what became of the shards, in the order of Options.Shards.
func (w *World) Shards() (all []ShardsOutcome) {
	for _, s := range w.shards {
		o := ShardsOutcome{
			Type: s.Name, Shards: len(s.slots), On: []string{},
			Coordinators: s.coordSlot.outcome.Starts, Resigned: s.resigned,
		}
		for _, x := range s.slots {
			one := x.result()
			if one.On != "" {
				o.Running++
				o.On = append(o.On, one.On)
			}
			o.Add(&one.SlotCounts)
		}
		slices.Sort(o.On)
		o.On = slices.Compact(o.On)
		all = append(all, o)
	}
	return all
}

// unheardOf reports whether two runs of a shard come of clusters that did not know each other: the members
// that run them, or those that have ordered them, never heard of each other. A newcomer to one side of a
// partition does not hear of members that were on the other side before it came, and may coordinate.
func (r *run) unheardOf(o *run) bool {
	s := r.executor.slot.shardOf
	if s == nil {
		return false
	}
	for _, p := range s.behind(r) {
		if slices.ContainsFunc(s.behind(o), func(q *process) bool { return p != q && strangers(p, q) }) {
			return true
		}
	}
	return false
}

// unremembered reports whether two runs of a shard come of one term, and no manager is left that was open when
// the older one started. The term then begins with the wall clock, and with the bits that shards leave for it,
// two coordinators of which the later one starts within four seconds may have the same.
func (r *run) unremembered(o *run) bool {
	s, w := r.executor.slot.shardOf, r.executor.p.w
	return message.TermOf(r.token) == message.TermOf(o.token) &&
		!slices.ContainsFunc(w.up(), func(p *process) bool {
			t := p.driver(s.coordSlot.index)
			return t != nil && t.began <= o.startedAt
		})
}

// behind are the members that a run without a lease comes of: its own, and the coordinators under its term.
func (s *shards) behind(r *run) []*process {
	all := []*process{r.executor.p}
	for _, c := range s.coordSlot.runs {
		if c.token == message.TermOf(r.token) {
			all = append(all, c.executor.p)
		}
	}
	return all
}

// floor is handover.Config.Floor of a machine that starts now. The worlds begin with the year 2026. The wall
// clock is right here, whatever a node's shows: where no member is left that remembers a token, package
// handover has nothing else to go by, and says so.
func (w *World) floor() uint64 {
	const begin = 1767225600
	return handover.FloorAt(begin + int64(w.now/time.Second))
}
