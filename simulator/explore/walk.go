package explore

import (
	"context"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
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
	// Progress is called now and then with what was counted so far. Nil: it is not.
	Progress func(WalkCounts)
}

type (
	// WalkCounts are the sizes of what was searched.
	WalkCounts = walk.Counts
	// WalkResult is what a walk found.
	WalkResult = walk.Report
	// Violation is a broken promise and the way to it. The promises are S1, S2, S4, L1, L3 and F1, as in the design; chain: the
	// rules of verdicts; stable: nobody decides before its view was stable.
	Violation = walk.Violation
)

// Run searches all states. It looks at ctx now and then, and returns what it has when that is cancelled.
func (o Walk) Run(ctx context.Context) WalkResult { return newWalker(o).search.Run(ctx) }

// walker is the model of a walk.
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
	search *walk.Search[walkState]

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
	for i := range w.n {
		w.members[i].init(w, i)
	}
	w.search = walk.NewSearch(w, o.Limit, o.Progress)
	return w
}

// First makes s the state in which the cluster is whole and armed, and is cut at this moment.
func (w *walker) First(s *walkState) {
	*s = walkState{
		lost: uint8(w.Lost), crashes: uint8(w.Crashes), pauses: uint8(w.Pauses),
		leaves: uint8(w.Leaves), removals: uint8(w.Removals), forgets: uint8(w.Forgets),
		restarts: uint8(w.Restarts),
	}
	for i := range w.first {
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
}
