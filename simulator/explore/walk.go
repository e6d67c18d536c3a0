package explore

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Walk tries every interleaving of one clean partition of a small cluster: every order in which messages, answers and
// detections arrive, with a number of faults at every possible moment. Time is virtual and moves only when nothing is under way,
// but for what is late. It finds what chance would not, in clusters of three or four members.
type Walk struct {
	// Sides are the members of each side, by index. Everybody has noticed the cut when the walk begins.
	Sides [][]int
	// Skew is how much later than the first side the others noticed it; it may be negative.
	Skew time.Duration
	// NoStore are the members that do not reach the lease store.
	NoStore []int
	// Watch tells every member that reaches the store of each change of the record.
	Watch bool
	// Lost, Late, Crashes and Pauses are how many of each fault may happen. Whatever is lost may be a request, an answer or a
	// message; whatever is late arrives at any later time, or never.
	Lost, Late, Crashes, Pauses int
	// Resolver and Strategy are the rules.
	Resolver sbr.Config
	Strategy sbr.Strategy
	// Limit bounds the number of states. Zero: none.
	Limit int
}

// WalkResult is what a walk found.
type WalkResult struct {
	// States is how many different states were reached, Rests in how many of them nothing more can happen.
	States, Rests int
	// Complete says that Limit was not reached.
	Complete bool
	// Broken are the first violations, each with the steps that lead to it.
	Broken []string
}

// walker is the search.
type walker struct {
	Walk
	side   []int
	access []bool
	seen   map[[16]byte]struct{}
	path   []string
	result WalkResult
}

// maxBroken bounds what a broken walk reports.
const maxBroken = 3

// Run searches all states.
func (o Walk) Run() WalkResult {
	w := &walker{Walk: o, seen: make(map[[16]byte]struct{})}
	n := 0
	for _, s := range o.Sides {
		n += len(s)
	}
	w.side, w.access = make([]int, n), make([]bool, n)
	for g, s := range o.Sides {
		for _, i := range s {
			w.side[i] = g
		}
	}
	for i := range w.access {
		w.access[i] = true
	}
	for _, i := range o.NoStore {
		w.access[i] = false
	}
	w.result.Complete = true
	w.visit(w.start())
	w.result.States = len(w.seen)
	return w.result
}

// start is the state in which everybody has noticed the cut and nothing else has happened.
func (w *walker) start() *walkState {
	s := &walkState{lost: w.Lost, late: w.Late, crashes: w.Crashes, pauses: w.Pauses}
	n := len(w.side)
	for i := range n {
		m := walkMember(i)
		r, err := sbr.New(w.Resolver, w.Strategy, m, 0)
		if err != nil {
			panic(err) // a mistake in the program
		}
		s.members = append(s.members, walkNode{r: r, up: true})
	}
	settle, cut := w.Resolver.SettleAfter, w.Resolver.SettleAfter+max(0, -w.Skew)
	for i := range n {
		for j := range n {
			if i != j {
				s.members[i].r.Step(0, sbr.MemberSeen{Member: walkMember(j)})
			}
		}
		s.members[i].r.Tick(settle)
		at := cut + time.Duration(min(w.side[i], 1))*w.Skew
		for j := range n {
			if w.side[i] != w.side[j] {
				s.members[i].r.Step(at, sbr.Reachability{ID: walkID(j), Unreachable: true})
			}
		}
		s.members[i].at = at
	}
	s.now = settle
	return s
}

func walkID(i int) sbr.ID { return sbr.ID(rune('A' + i)) }

func walkIndex(id sbr.ID) int { return int(id[0] - 'A') }

func walkMember(i int) sbr.Member {
	return sbr.Member{ID: walkID(i), Name: string(walkID(i)), Addr: fmt.Sprintf("10.0.0.%d:1", i+1), Born: int64(i + 1), Status: sbr.Up}
}

// visit searches everything that can follow s.
func (w *walker) visit(s *walkState) {
	h := fnv.New128a()
	_, _ = h.Write(s.key())
	var key [16]byte
	h.Sum(key[:0])
	if _, ok := w.seen[key]; ok || len(w.result.Broken) >= maxBroken {
		return
	}
	if w.Limit > 0 && len(w.seen) >= w.Limit {
		w.result.Complete = false
		return
	}
	w.seen[key] = struct{}{}
	if w.quiet(s) {
		w.result.Rests++
		w.rested(s)
	}
	for _, m := range w.moves(s) {
		w.path = append(w.path, m.name)
		w.visit(m.to)
		w.path = w.path[:len(w.path)-1]
	}
}

// rested checks the promises in a state in which nothing more happens by itself.
func (w *walker) rested(s *walkState) {
	v := s.record.Verdict
	up, sides := 0, make(map[int]bool)
	for i := range s.members {
		m := &s.members[i]
		if !m.up || m.paused {
			continue
		}
		up++
		sides[w.side[i]] = true
		if v.Standing(walkID(i), 0) == sbr.Out {
			w.broken(s, "S2: %s is up although the last verdict leaves it out", walkID(i))
		}
	}
	if len(sides) > 1 {
		w.broken(s, "S1: members of %d sides are up", len(sides))
	}
	if up == 0 && !w.excused(s) {
		w.broken(s, "L1: nobody is up")
	}
}

// excused reports whether the faults explain that nobody is up: somebody who reached the store crashed or was paused, or a
// winner could not hear that it won, because more than one answer did not come, or because nobody else of its side could ask.
func (w *walker) excused(s *walkState) bool {
	harmed := s.crashes < w.Crashes || s.pauses < w.Pauses
	unheard := w.Lost + w.Late - s.lost - s.late
	return harmed || unheard > 1 || len(w.NoStore) > 0 && unheard > 0
}

func (w *walker) broken(s *walkState, format string, args ...any) {
	if len(w.result.Broken) >= maxBroken {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, format, args...)
	for _, step := range w.path {
		b.WriteString("\n  " + step)
	}
	fmt.Fprintf(&b, "\n  record %+v", s.record)
	w.result.Broken = append(w.result.Broken, b.String())
}
