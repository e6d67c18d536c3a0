package explore

import (
	"context"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// MaxMembers is how many members a walk may have.
const MaxMembers = 8

// Walk tries every interleaving of one clean partition of a small cluster: every order in which deadlines, messages, requests
// and answers come, with a number of faults at every possible moment. Time is virtual and moves only when nothing is under way,
// but for what is late. It finds what chance would not.
type Walk struct {
	// Sides are the members of each side, by index; together they are 0 to n-1, at most MaxMembers.
	Sides [][]int
	// Noticed is when each side notices the cut, all its members at once, counted from the first side that does. Empty: all together.
	Noticed []time.Duration
	// NoStore are the members that never reach the lease store.
	NoStore []int
	// Watch tells every member that reaches the store of each change of the record.
	Watch bool
	// LateCut lets also what Lost counts happen to the news of the cut: a member notices one of the others later than the rest. What
	// it never notices is no state of rest.
	LateCut bool
	// Lost is how many requests, answers and messages may come late: at any later time, or never. Crashes and Pauses are how many
	// of these may happen, to any member at any moment.
	Lost, Crashes, Pauses int
	// Leaves, Removals and Forgets are how often a member says goodbye and ends, a member is told to remove one that it cannot reach from
	// its list (which spreads to those that it reaches), and the store forgets: the record is deleted, or becomes an earlier one. Any member,
	// at any moment.
	Leaves, Removals, Forgets int
	// Restarts is how many members may crash and start anew at once, each of them once: the next life reads the store, joins its side, knows
	// whom the one before could not reach, and proves that it ended. It needs at most half of MaxMembers.
	Restarts int
	// Resolver and Strategy are the rules.
	Resolver sbr.Config
	Strategy sbr.Strategy
	// Limit bounds the number of states. Zero: none.
	Limit int
	// Progress is called now and then with what was counted so far. Nil: nobody wants to know.
	Progress func(WalkCounts)
}

// WalkCounts are the sizes of what was searched.
type WalkCounts struct {
	// States is how many different states were reached, Edges how many steps lead from one to another, Rests in how many
	// states nothing more happens by itself.
	States int `json:"states"`
	Edges  int `json:"edges"`
	Rests  int `json:"rests"`
	// Excepted is how many of Rests follow the one schedule that S1 excepts: the store forgot a verdict that no survivor could tell it again.
	Excepted int `json:"excepted"`
	// Resolvers is how many different states single resolvers were in.
	Resolvers int `json:"-"`
}

// Add returns the sum of both.
func (c WalkCounts) Add(d WalkCounts) WalkCounts {
	return WalkCounts{
		States: c.States + d.States, Edges: c.Edges + d.Edges, Rests: c.Rests + d.Rests, Excepted: c.Excepted + d.Excepted,
		Resolvers: c.Resolvers + d.Resolvers,
	}
}

// WalkResult is what a walk found.
type WalkResult struct {
	WalkCounts
	// Complete says that everything was searched: neither Limit was reached nor the context cancelled.
	Complete bool
	// Broken are the first violations. A walk ends when it has found three.
	Broken []Violation
}

// Violation is a broken promise and the way to it.
type Violation struct {
	// Promise is the promise's short name, as in the design: S1, S2, S4, L1, L3, F1; chain: the rules of
	// verdicts; stable: nobody decides before its view was stable.
	Promise string `json:"promise"`
	// Cluster is the partition, where it is not plain from the walk.
	Cluster string `json:"partition,omitempty"`
	// Text says what is wrong.
	Text string `json:"text"`
	// Steps are what happened, from the cut on, one line each.
	Steps []string `json:"steps"`
}

// Run searches all states. It looks at ctx now and then, and returns what it has when that is cancelled.
func (o Walk) Run(ctx context.Context) WalkResult {
	w := newWalker(o)
	w.search(ctx)
	return w.finish()
}

const (
	maxBroken  = 3
	checkEvery = 1 << 12 // states between two looks at the context
	reportEach = 1 << 16 // states between two reports of progress
)

// walker is a search under way.
type walker struct {
	Walk
	n      int // members, and where they may restart, their next lives, which come after them
	first  int // members of the start
	side   [MaxMembers]int
	mates  [MaxMembers]uint8 // the other members of the same side, a bit each
	access uint8
	lease  bool // the strategy needs it

	events  walkEvents
	members [MaxMembers]walkMember

	looks  walkLooks
	seen   walkSet
	stack  []*walkFrame
	depth  int
	buf    []byte
	result WalkResult

	// For tests: a search without reduction, and what is called in every state of rest, at each step of a member, when time passes.
	plain   bool
	rested  func(*walkState)
	stepped func(i int, event uint32, age uint16, t *walkEffects)
	waited  func(by time.Duration)
}

func newWalker(o Walk) *walker {
	w := &walker{Walk: o, lease: sbr.NeedsLease(o.Strategy)}
	for g, s := range o.Sides {
		w.n += len(s)
		for _, i := range s {
			w.side[i] = g
		}
	}
	w.first = w.n
	if o.Restarts > 0 {
		w.n *= 2
		for i := range w.first {
			w.side[w.first+i] = w.side[i]
		}
	}
	for i := range w.n {
		w.access |= 1 << i
		for j := range w.n {
			if i != j && w.side[i] == w.side[j] {
				w.mates[i] |= 1 << j
			}
		}
	}
	for _, i := range o.NoStore {
		w.access &^= 1<<i | 1<<(w.first+i)
	}
	w.events.init()
	w.result.Complete = true
	return w
}

// finish adds up.
func (w *walker) finish() WalkResult {
	w.result.States = w.seen.len()
	for i := range w.n {
		w.result.Resolvers += len(w.members[i].locals)
	}
	return w.result
}

// start is the state in which the cluster is whole and armed, and is cut at this moment.
func (w *walker) start() *walkState { return w.startIn(new(walkState)) }

func (w *walker) startIn(s *walkState) *walkState {
	*s = walkState{
		lost: uint8(w.Lost), crashes: uint8(w.Crashes), pauses: uint8(w.Pauses),
		leaves: uint8(w.Leaves), removals: uint8(w.Removals), forgets: uint8(w.Forgets),
		restarts: uint8(w.Restarts),
	}
	for i := range w.n {
		if w.members[i].w == nil {
			w.members[i].init(w, i)
		}
		if i >= w.first {
			continue // not before the first life has ended
		}
		r, err := sbr.New(w.Resolver, w.Strategy, walkNode(i), 0)
		if err != nil {
			panic(err) // a mistake in the program
		}
		r.SkipAttempts(walkFirstAttempt)
		for j := range w.first {
			if i != j {
				r.Step(0, sbr.MemberSeen{Member: walkNode(j)})
			}
		}
		r.Tick(w.Resolver.SettleAfter)
		s.local[i] = w.members[i].intern(r, w.Resolver.SettleAfter, walkFirstAttempt, walkUnrest{})
	}
	w.notice(s)
	return s
}
