// Package partial has cuts that are not clean, for the tests that play them in the model, over real Serf and
// on hosts.
package partial

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Shapes are which one-way links between n members, numbered from 0, carry nothing.
var Shapes = []struct {
	Name string
	cut  func(n int, r *rand.Rand, from, to int) bool
}{
	{"one link", func(n int, _ *rand.Rand, a, b int) bool { return pair(a, b, 1, n-2) }},
	{"two links", func(n int, _ *rand.Rand, a, b int) bool { return pair(a, b, 1, n-2) || pair(a, b, 0, n-1) }},
	{"one way", func(n int, _ *rand.Rand, a, b int) bool { return a == 1 && b == n-2 }},
	{"bridge", func(n int, _ *rand.Rand, a, b int) bool {
		return a != n/2 && b != n/2 && (a < n/2) != (b < n/2)
	}},
	{"deaf", func(_ int, _ *rand.Rand, _, b int) bool { return b == 2 }},
	{"mute", func(_ int, _ *rand.Rand, a, _ int) bool { return a == 2 }},
	{"half-deaf", func(_ int, _ *rand.Rand, a, b int) bool { return b == 2 && a%2 == 1 }},
	{"ring", func(n int, _ *rand.Rand, a, b int) bool { return (a+1)%n != b && (b+1)%n != a }},
	{"star", func(_ int, _ *rand.Rand, a, b int) bool { return a != 2 && b != 2 }},
	{"random .1", func(_ int, r *rand.Rand, _, _ int) bool { return r.Float64() < 0.1 }},
	{"random .3", func(_ int, r *rand.Rand, _, _ int) bool { return r.Float64() < 0.3 }},
	{"three-way", func(_ int, _ *rand.Rand, a, b int) bool { return a%3 != b%3 }},
	{"halves", func(n int, _ *rand.Rand, a, b int) bool { return (a < n/2+1) != (b < n/2+1) }},
	{"lone", func(n int, _ *rand.Rand, a, b int) bool { return (a == n-1) != (b == n-1) }},
}

func pair(a, b, x, y int) bool { return a == x && b == y || a == y && b == x }

// Cut returns the one-way links between n members that a shape cuts.
func Cut(shape, n int, r *rand.Rand) (links [][2]int) {
	x := &Shapes[shape]
	random := strings.HasPrefix(x.Name, "random") // both ways
	for a := range n {
		for b := range n {
			switch {
			case a == b || random && b < a || !x.cut(n, r, a, b):
			case random:
				links = append(links, [2]int{a, b}, [2]int{b, a})
			default:
				links = append(links, [2]int{a, b})
			}
		}
	}
	return links
}

// Possible is how many of n members can all reach each other without these links.
func Possible(n int, cut [][2]int) int {
	var v sbr.View
	for i := range n {
		v.Members = append(v.Members, sbr.Member{ID: name(i), Status: sbr.Up})
	}
	v.Self = name(0)
	for _, l := range cut {
		v.Reports = append(v.Reports, sbr.Report{Observer: name(l[0]), Subject: name(l[1])})
	}
	if g := v.LargestGroup(""); g != nil {
		return len(g.Members)
	}
	return n
}

func name(i int) sbr.ID { return sbr.ID(fmt.Sprintf("n%d", i+1)) }

// File is the text of a scenario with such a cut, and how many members of it can all reach each other.
func File(shape, n int, seed uint64, rule string) (text string, possible int) {
	cut := Cut(shape, n, rand.New(rand.NewPCG(seed, uint64(shape))))
	var file strings.Builder
	fmt.Fprintf(&file, "cluster: {nodes: %d, split-brain-resolver: {indirectly-connected: %s}}\n", n, rule)
	file.WriteString("run-for: 180s\nsteps:\n")
	for _, l := range cut {
		switch both := slices.Contains(cut, [2]int{l[1], l[0]}); {
		case !both:
			fmt.Fprintf(&file, "- {at: 10s, cut-one-way: [%s, %s]}\n", name(l[0]), name(l[1]))
		case l[0] < l[1]:
			fmt.Fprintf(&file, "- {at: 10s, cut: [%s, %s]}\n", name(l[0]), name(l[1]))
		}
	}
	return file.String(), Possible(n, cut)
}
