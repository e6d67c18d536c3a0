package serf_test

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/serf-sbr/serf-sbr/downing/memnet"
)

// topology is what the steps have done to the network, and does it to a real one.
type topology struct {
	net   *memnet.Network
	names []string
	group []int           // nodes of different groups cannot reach each other
	cut   map[[2]int]bool // single links, from and to; a partition leaves them as they are
}

func newTopology(net *memnet.Network, names []string) *topology {
	return &topology{net: net, names: names, group: make([]int, len(names)), cut: make(map[[2]int]bool)}
}

// address is that of the n-th node, counted from 1: hosts are ordered as text, so that within a block all have the same length. It is
// the order that package scenario documents.
func address(n int) netip.Addr {
	block := byte(0)
	switch {
	case n >= 100:
		block = 2
	case n >= 10:
		block = 1
	}
	return netip.AddrFrom4([4]byte{10, 0, block, byte(n)})
}

// partition cuts the network into groups; nodes that are not named form one more.
func (t *topology) partition(groups [][]int) error {
	clear(t.group)
	for g, nodes := range groups {
		for _, i := range nodes {
			t.group[i] = g + 1
		}
	}
	return t.apply()
}

func (t *topology) heal() error {
	clear(t.group)
	clear(t.cut)
	return t.apply()
}

func (t *topology) cutOneWay(from, to int) error {
	t.cut[[2]int{from, to}] = true
	return t.net.CutOneWay(t.names[from], t.names[to])
}

func (t *topology) mendOneWay(from, to int) error {
	delete(t.cut, [2]int{from, to})
	return t.apply()
}

// apply makes the real network what is said here. Single links are cut anew: memnet forgets them with each partition.
func (t *topology) apply() error {
	byGroup := make(map[int][]string)
	for i, g := range t.group {
		byGroup[g] = append(byGroup[g], t.names[i])
	}
	var groups [][]string
	for _, names := range byGroup {
		groups = append(groups, names)
	}
	if err := t.net.Partition(groups...); err != nil {
		return fmt.Errorf("partition %v: %w", groups, err)
	}
	for link := range t.cut {
		if err := t.net.CutOneWay(t.names[link[0]], t.names[link[1]]); err != nil {
			return err
		}
	}
	return nil
}

func (t *topology) open(from, to int) bool {
	return t.group[from] == t.group[to] && !t.cut[[2]int{from, to}]
}

// direct reports whether a and b reach each other there and back.
func (t *topology) direct(a, b int) bool { return t.open(a, b) && t.open(b, a) }

// connected reports whether a and b reach each other, maybe over others.
func (t *topology) connected(a, b int) bool {
	seen, todo := []int{a}, []int{a}
	for len(todo) > 0 {
		x := todo[0]
		todo = todo[1:]
		if x == b {
			return true
		}
		for y := range t.names {
			if !slices.Contains(seen, y) && t.direct(x, y) {
				seen, todo = append(seen, y), append(todo, y)
			}
		}
	}
	return false
}
