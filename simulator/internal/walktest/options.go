package walktest

import (
	"fmt"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

const (
	// MaxMembers is how many members a walk may have.
	MaxMembers = 4
	// MaxShards is how many things may run in it, each on one member.
	MaxShards = 2
)

// Options say what may happen in a walk. Start from Default. Losses, Doubts and Strangers need UseLease.
type Options struct {
	// Name says in a word what the walk is about.
	Name string
	// Members is how many there are, at most MaxMembers. They are named a, b, c, d in the order of their
	// births.
	Members int
	// Shards is how many things run, at most MaxShards.
	Shards int
	// Formed: at the beginning the cluster is there, and everything runs. Otherwise the members have just
	// found each other.
	Formed bool
	// Joins is how many of the last members join a cluster that is there already. Skewed: their clocks are
	// behind, so they count as the oldest.
	Joins  int
	Skewed bool
	Budget

	// Rules are those of the machines; Self is each member's. UseLease: what runs has a lease.
	slot.Rules
	// Step is the least time between two moments. All other times must be multiples of it.
	Step time.Duration
	// StableAfter is how long after the last change a verdict comes at the earliest.
	StableAfter time.Duration
	// Notice is how long it may take to notice something. It is set by a walk: half the removal margin.
	Notice time.Duration
	// Bound is how long after the end of all faults everything runs again, at the latest.
	Bound time.Duration

	// Limit bounds the number of states. Zero: none.
	Limit int
}

// Budget is what may happen, or may still happen: each number is how often, at any moment, at most 15.
type Budget struct {
	// Cuts is how often the cluster is cut into two, Crashes how many members crash, Pauses how often one
	// stands still.
	Cuts, Crashes, Pauses int8
	// Resigns is how many managers are stopped, Returns how many of these members open a new manager. Leaves
	// is how many members leave.
	Resigns, Returns, Leaves int8
	// Ends is how often a run ends by itself.
	Ends int8
	// Late is how many messages come late, Twice how many come a second time, late. Lost is how many never
	// come.
	Late, Twice, Lost int8
	// Removals is how many members see the losers of a verdict removed, some time after they saw them as
	// down.
	Removals int8
	// Slow is how many runs take any time to end.
	Slow int8
	// Losses is how often a lease is lost although its holder is there, Doubts how often its store gives no
	// answer, Strangers how often a process out of the cluster takes a free lease, for any time.
	Losses, Doubts, Strangers int8
	// Changes is how often another member coordinates although the previous coordinator is well, and does not
	// know of it at once.
	Changes int8
	// Whims is how often the allocation wants a shard elsewhere although it runs well: as it does where
	// members come and go for long enough.
	Whims int8
}

// appendKey appends all numbers.
func (g *Budget) appendKey(b []byte) []byte {
	for _, n := range [...]int8{
		g.Cuts, g.Crashes, g.Pauses, g.Resigns, g.Returns, g.Leaves, g.Ends, g.Late, g.Twice, g.Lost,
		g.Removals, g.Slow, g.Losses, g.Doubts, g.Strangers, g.Changes, g.Whims,
	} {
		b = append(b, byte(n))
	}
	return b
}

// Default returns four members with short times, to which nothing happens yet.
func Default() Options {
	const step = 2 * time.Second
	return Options{
		Members: MaxMembers, Shards: 1, Step: step, StableAfter: 4 * step, Notice: 2 * step, Bound: 30 * step,
		Rules: slot.Rules{
			HandOverRetryInterval: 2 * step, NumberOfRetries: 2, LeaseRetryInterval: 2 * step,
			Margin: 4 * step, Trust: 5 * step,
		},
	}
}

// Plan makes walks of lists of what may happen, such as "three, a crash, a late message", with leases or
// without.
func Plan(lease bool, lists ...string) (all []Options) {
	for _, list := range lists {
		o := Default()
		o.Formed, o.UseLease, o.Name = true, lease, list
		if lease {
			o.Name += ", with leases"
		}
		o.allow(list)
		all = append(all, o)
	}
	return all
}

// allow allows what a list names. It panics at an unknown name: a mistake in the program.
func (o *Options) allow(list string) {
	for name := range strings.SplitSeq(list, ", ") {
		change, ok := faults[name]
		if !ok {
			panic(fmt.Sprintf("walk: there is no %q", name))
		}
		change(o)
	}
}

var faults = map[string]func(*Options){
	"forming":             func(o *Options) { o.Formed = false },
	"two":                 func(o *Options) { o.Members = 2 },
	"three":               func(o *Options) { o.Members = 3 },
	"two shards":          func(o *Options) { o.Shards = 2 },
	"a newcomer":          func(o *Options) { o.Joins = 1 },
	"an old newcomer":     func(o *Options) { o.Joins, o.Skewed = 1, true },
	"a cut":               func(o *Options) { o.Cuts++ },
	"a crash":             func(o *Options) { o.Crashes++ },
	"a pause":             func(o *Options) { o.Pauses++ },
	"a resignation":       func(o *Options) { o.Resigns++ },
	"a return":            func(o *Options) { o.Returns++ },
	"a leave":             func(o *Options) { o.Leaves++ },
	"an end":              func(o *Options) { o.Ends++ },
	"a late message":      func(o *Options) { o.Late++ },
	"a message twice":     func(o *Options) { o.Twice++ },
	"a lost message":      func(o *Options) { o.Lost++ },
	"a removal":           func(o *Options) { o.Removals++ },
	"a slow end":          func(o *Options) { o.Slow++ },
	"a lost lease":        func(o *Options) { o.Losses++ },
	"a silent store":      func(o *Options) { o.Doubts++ },
	"a stranger":          func(o *Options) { o.Strangers++ },
	"another coordinator": func(o *Options) { o.Changes++ },
	"a whim":              func(o *Options) { o.Whims++ },
}

var ids = [MaxMembers]sbr.ID{"a", "b", "c", "d"}

// Name is a member's.
func Name(i int) sbr.ID { return ids[i] }

// The words of a search, which models of singletons and shards share.

// Kind is what can happen next.
type Kind = walk.Kind

// Move is something that can happen next.
type Move = walk.Move

// Model is what a Search searches.
type Model[S any] = walk.Model[S]

// Search is a search over the states of a Model.
type Search[S any] = walk.Search[S]

// Report is what a Search found.
type Report = walk.Report

// Counts are the sizes of a Search.
type Counts = walk.Counts

// Waits lets time pass.
const Waits = walk.Waits
