package simulator

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// Nemesis plans what happens to a cluster: it puts steps into a Plan. It begins at the Plan's time and leaves
// the Plan at the time at which it is over. It must depend on nothing but the Plan, so that a seed always
// gives the same steps.
//
// A nemesis of one's own is a function:
//
//	crashTheOldest := func(p *simulator.Plan) { p.Play(simulator.Crash(p.Members()[0])) }
type Nemesis func(*Plan)

// Plan is where nemeses put their steps. It belongs to one seed, and is not safe for concurrent use.
type Plan struct {
	rng      *rand.Rand
	now      time.Duration
	members  []string
	steps    []scenario.Step
	taken    map[string]bool // names, also of those that join; one for all plans of a scenario
	problems *problems
}

// Now is the time at which the next step happens.
func (p *Plan) Now() time.Duration { return p.now }

// Members are the names of the members at the start, the oldest first. The slice is a copy.
func (p *Plan) Members() []string { return slices.Clone(p.members) }

// Rand is the only source of chance that a nemesis may use. The seed of the run decides what it gives.
func (p *Plan) Rand() *rand.Rand { return p.rng }

// Do puts a step at the Plan's time. The At of the step is set.
func (p *Plan) Do(st scenario.Step) {
	st.At = scenario.Exactly(p.now)
	if st.Join != nil {
		p.taken[*st.Join] = true
	}
	p.steps = append(p.steps, st)
}

// Wait lets time pass. A negative time is a mistake that Build reports.
func (p *Plan) Wait(d time.Duration) {
	if d < 0 {
		p.problems.add("a nemesis waits for %v: it must not be negative", d)
		return
	}
	p.now += d
}

// Play plans a nemesis at the Plan's time. When it returns, the Plan is at the time at which the nemesis is
// over. Nil does nothing.
func (p *Plan) Play(n Nemesis) {
	if n != nil {
		n(p)
	}
}

// between returns a time from low to high, as round as people write it.
func (p *Plan) between(low, high time.Duration) time.Duration {
	grain := time.Millisecond
	switch {
	case high >= 10*time.Minute:
		grain = time.Second
	case high >= 2*time.Second:
		grain = 100 * time.Millisecond
	}
	if n := int64((high - low) / grain); n > 0 {
		low += time.Duration(p.rng.Int64N(n+1)) * grain
	}
	return low
}

// some returns n members, or when n is 0 or less, as many as chance says, at least one. They come in the
// order of the members.
func (p *Plan) some(n int) []string {
	if len(p.members) == 0 {
		return nil
	}
	if n <= 0 {
		n = 1 + p.rng.IntN(len(p.members))
	}
	order := p.rng.Perm(len(p.members))
	picked := order[:min(n, len(order))]
	slices.Sort(picked)
	return p.named(picked)
}

func (p *Plan) named(indexes []int) []string {
	names := make([]string, len(indexes))
	for i, x := range indexes {
		names[i] = p.members[x]
	}
	return names
}

// shuffled are all members in a random order.
func (p *Plan) shuffled() []string { return p.named(p.rng.Perm(len(p.members))) }

// inOrder sorts names as the members are.
func (p *Plan) inOrder(names []string) []string {
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Compare(slices.Index(p.members, a), slices.Index(p.members, b))
	})
	return names
}

// problems are the mistakes of the author of a scenario.
type problems struct{ lines []string }

func (p *problems) add(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(p.lines, line) {
		p.lines = append(p.lines, line)
	}
}

// all adds each line of an error, put in other words.
func (p *problems) all(err error, words func(line string) string) {
	if err == nil {
		return
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		p.add("%s", words(line))
	}
}
