package explore

import (
	"slices"
	"strconv"
	"strings"
)

// Partition is a way to cut a cluster into sides: the members of each, by index, in the order of their addresses.
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
