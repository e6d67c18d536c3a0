// Package partial writes scenario files about cuts that are not clean, for the tests that play them in the model and over real Serf.
package partial

import (
	"fmt"
	"math/rand/v2"
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

// File is the text of a scenario with such a cut, and how many members of it can all reach each other.
func File(shape, n int, seed uint64, rule string) (text string, possible int) {
	r, x := rand.New(rand.NewPCG(seed, uint64(shape))), &Shapes[shape]
	random := strings.HasPrefix(x.Name, "random")
	var file strings.Builder
	fmt.Fprintf(&file, "cluster: {nodes: %d, split-brain-resolver: {indirectly-connected: %s}}\nrun-for: 180s\nsteps:\n", n, rule)
	v := sbr.View{Self: "n1"}
	for a := range n {
		v.Members = append(v.Members, sbr.Member{ID: sbr.ID(fmt.Sprintf("n%d", a+1)), Status: sbr.Up})
		for b := range n {
			if a == b || random && b < a || !x.cut(n, r, a, b) {
				continue
			}
			verb := "cut-one-way"
			if random {
				verb = "cut"
			}
			fmt.Fprintf(&file, "- {at: 10s, %s: [n%d, n%d]}\n", verb, a+1, b+1)
			v.Reports = append(v.Reports, sbr.Report{Observer: v.Members[a].ID, Subject: sbr.ID(fmt.Sprintf("n%d", b+1))})
		}
	}
	if g := v.LargestGroup(""); g != nil {
		return file.String(), len(g.Members)
	}
	return file.String(), n
}
