package explore

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Exhaustive plans the walks that together try everything that can happen to a cluster that is cut once:
// every way to cut it, every order in which the sides decide, and in each of them every interleaving with so
// many faults (Walk).
type Exhaustive struct {
	// Members is the size of the cluster, from 2 to MaxMembers.
	Members int `json:"nodes"`
	Faults
	// NoStore is how many members may be unable to reach the lease store: every choice of so many and of
	// fewer.
	NoStore int `json:"no-store"`
	// LateCut and Watch are those of Walk.
	LateCut bool `json:"late-detection"`
	Watch   bool `json:"watch"`
	// Resolver and Strategy are the rules.
	Resolver sbr.Config   `json:"-"`
	Strategy sbr.Strategy `json:"-"`
}

// apart are the distances in time between sides that do not decide at the same moment: one in which a side
// decides while the race of the side before may be under way, and one after which the winner has given the
// lease back.
func apart(c *sbr.Config) []time.Duration {
	return []time.Duration{2 * time.Second, c.StableAfter + c.LeaseDeadline + c.ReleaseAfter}
}

// Plan returns the walks, joined in families that may cover each other. Errors: a number that is out of
// range, rules that are not valid.
func (e Exhaustive) Plan() ([]Family, error) {
	if err := e.validate(); err != nil {
		return nil, err
	}
	var plan []Family
	index := make(map[string]int)
	for _, p := range partitions(e.Members) {
		for _, levels := range orders(len(p)) {
			for k, by := range apart(&e.Resolver) {
				if k > 0 && slices.Max(levels) == 0 {
					break // all at one moment: there is no distance
				}
				for _, without := range e.stores() {
					form := formOf(p, levels, by, without)
					n, ok := index[form]
					if !ok {
						n = len(plan)
						index[form] = n
						plan = append(plan, Family{Form: form, Partition: p.String(), Sizes: p.Sizes()})
					}
					plan[n].Walks = append(plan[n].Walks, e.walk(p, levels, by, without))
				}
			}
		}
	}
	return plan, nil
}

func (e Exhaustive) walk(p Partition, levels []int, by time.Duration, without []int) Walk {
	return Walk{
		Sides: p, Noticed: e.noticed(p, levels, by), NoStore: without, Faults: e.Faults,
		Watch: e.Watch, LateCut: e.LateCut, Resolver: e.Resolver, Strategy: e.Strategy,
	}
}

// maxFaults is how many faults of a kind a walk may have; each multiplies the states.
const maxFaults = 9

func (e Exhaustive) validate() error {
	for _, c := range []struct {
		name             string
		value, low, high int
	}{
		{"members", e.Members, 2, MaxMembers}, {"lost", e.Lost, 0, maxFaults}, {"crashes", e.Crashes, 0, maxFaults},
		{"pauses", e.Pauses, 0, maxFaults}, {"leaves", e.Leaves, 0, maxFaults}, {"removals", e.Removals, 0, maxFaults},
		{"times that the store forgets", e.Forgets, 0, maxFaults}, {"restarts", e.Restarts, 0, maxFaults}, {"members without the store", e.NoStore, 0, e.Members},
	} {
		if c.value < c.low || c.value > c.high {
			return fmt.Errorf("explore: %d %s: it must be a number from %d to %d", c.value, c.name, c.low, c.high)
		}
	}
	if e.Forgets > 0 && !e.Watch {
		return errors.New("explore: a store that forgets needs members that watch it: the walk leaves out that the others read it now and then")
	}
	if e.Restarts > 0 && 2*e.Members > MaxMembers {
		return fmt.Errorf("explore: %d members that restart: it must be at most %d", e.Members, MaxMembers/2)
	}
	if err := e.Resolver.Validate(); err != nil {
		return fmt.Errorf("explore: %w", err)
	}
	if e.Resolver.StableAfter == sbr.Auto {
		return errors.New("explore: stable-after is auto: it must be a duration, all walks have the same size")
	}
	if e.Resolver.StableAfter == 0 {
		return errors.New("explore: stable-after is 0s: it must be more than that")
	}
	return nil
}

// orders lists every order of n sides, some of which may come at the same moment: the place of each.
func orders(n int) (all [][]int) {
	levels := make([]int, n)
	var fill func(g int)
	fill = func(g int) {
		if g < n {
			for levels[g] = range n {
				fill(g + 1)
			}
			return
		}
		for l := range slices.Max(levels) {
			if !slices.Contains(levels, l) {
				return // no side comes at that place
			}
		}
		all = append(all, slices.Clone(levels))
	}
	fill(0)
	return all
}

// noticed works out when each side has to notice the cut in order to decide in its place: a side that waits
// before it asks for the lease notices earlier by that delay.
func (e Exhaustive) noticed(p Partition, levels []int, by time.Duration) []time.Duration {
	at := make([]time.Duration, len(p))
	for g, l := range levels {
		at[g] = time.Duration(l)*by - e.delay(p[g])
	}
	first := slices.Min(at)
	for g := range at {
		at[g] -= first
	}
	return at
}

// delay is how long a side waits before it asks for the lease.
func (e Exhaustive) delay(side []int) time.Duration {
	var members []sbr.Member
	for i := range e.Members {
		m := walkNode(i)
		m.Unreachable = !slices.Contains(side, i)
		members = append(members, m)
	}
	v := sbr.NewView(walkID(side[0]), members, nil, nil)
	return e.Strategy.Decide(&v).Delay
}

// stores lists every choice of members that do not reach the store.
func (e Exhaustive) stores() (all [][]int) {
	for mask := range 1 << e.Members {
		var without []int
		for i := range e.Members {
			if mask>>i&1 != 0 {
				without = append(without, i)
			}
		}
		if len(without) <= e.NoStore {
			all = append(all, without)
		}
	}
	return all
}

// formOf is what a walk is but for the names: the sizes of the sides, sides that decide at one moment joined
// by "+", sides that decide one after the other by ">". A side of which some members do not reach the store
// is followed by a mark for each member.
func formOf(p Partition, levels []int, by time.Duration, without []int) string {
	type side struct {
		level, size int
		marks       string
	}
	var sides []side
	for g, s := range p {
		marks := ""
		for _, i := range s {
			if slices.Contains(without, i) {
				marks += "-"
			} else {
				marks += "s"
			}
		}
		if !strings.Contains(marks, "-") {
			marks = ""
		}
		sides = append(sides, side{levels[g], len(s), marks})
	}
	slices.SortFunc(sides, func(a, b side) int {
		return cmp.Or(cmp.Compare(a.level, b.level), cmp.Compare(b.size, a.size), strings.Compare(a.marks, b.marks))
	})
	var text strings.Builder
	for k, s := range sides {
		switch {
		case k == 0:
		case s.level == sides[k-1].level:
			text.WriteString("+")
		default:
			text.WriteString(">")
		}
		text.WriteString(strconv.Itoa(s.size))
		if s.marks != "" {
			text.WriteString("(" + s.marks + ")")
		}
	}
	if slices.Max(levels) > 0 {
		fmt.Fprintf(&text, " %v", by)
	}
	return text.String()
}

// Partition is a way to cut a cluster into sides: the members of each, by index, in the order of their
// addresses.
type Partition [][]int

// partitions lists every way to cut members 0 to n-1 into two or more sides.
func partitions(n int) []Partition {
	all := []Partition{{}}
	for i := range n {
		var next []Partition
		for _, p := range all {
			for g := range p {
				q := p.clone()
				q[g] = append(q[g], i)
				next = append(next, q)
			}
			next = append(next, append(p.clone(), []int{i}))
		}
		all = next
	}
	all = slices.DeleteFunc(all, func(p Partition) bool { return len(p) < 2 })
	slices.SortStableFunc(all, func(a, b Partition) int { return slices.Compare(b.sizes(), a.sizes()) })
	return all
}

func (p Partition) clone() Partition {
	c := make(Partition, len(p))
	for g, s := range p {
		c[g] = slices.Clone(s)
	}
	return c
}

// sizes are those of the sides, the largest first.
func (p Partition) sizes() (sizes []int) {
	for _, s := range p {
		sizes = append(sizes, len(s))
	}
	slices.SortFunc(sizes, func(a, b int) int { return b - a })
	return sizes
}

// Sizes are those of the sides as a text, the largest first: "3|2".
func (p Partition) Sizes() string {
	var sizes []string
	for _, n := range p.sizes() {
		sizes = append(sizes, strconv.Itoa(n))
	}
	return strings.Join(sizes, "|")
}

// String names the members of each side.
func (p Partition) String() string {
	var sides []string
	for _, s := range p {
		var members []string
		for _, i := range s {
			members = append(members, walkName(i))
		}
		sides = append(sides, strings.Join(members, " "))
	}
	return strings.Join(sides, " | ")
}
