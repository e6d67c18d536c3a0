package serf_test

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/downing/memnet"
)

// topology is what the steps have done to the network, and does it to a real one.
type topology struct {
	net   *memnet.Network
	names []string
	group []int           // nodes of different groups cannot reach each other
	cut   map[[2]int]bool // single links, from and to; a partition leaves them as they are
	every memnet.Config   // of links that have none of their own
	own   map[[2]int]memnet.Config
}

func newTopology(every memnet.Config, names []string) *topology {
	return &topology{
		net: memnet.New(every), names: names, every: every,
		group: make([]int, len(names)), cut: make(map[[2]int]bool), own: make(map[[2]int]memnet.Config),
	}
}

// address is that of the n-th node, counted from 1: hosts are ordered as text, so that within a block all
// have the same length. It is the order that package scenario documents.
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
	for link := range t.own {
		if err := t.net.SetLink(t.names[link[0]], t.names[link[1]], t.every); err != nil {
			return err
		}
	}
	clear(t.own)
	return t.apply()
}

// lose loses a share of what is sent over every link from now on.
func (t *topology) lose(share float64) error {
	if t.every.Loss = share; share == 0 {
		return nil
	}
	for _, from := range t.names {
		for _, to := range t.names {
			if from == to {
				continue
			}
			if err := t.net.SetLink(from, to, t.every); err != nil {
				return err
			}
		}
	}
	return nil
}

// link changes what becomes of what from sends to the node to. What is nil stays as it is; no loss and no
// latency make it a link like every other one.
func (t *topology) link(from, to int, loss *float64, latency *time.Duration) error {
	way := [2]int{from, to}
	c, own := t.own[way]
	if !own {
		c = t.every
	}
	switch {
	case loss != nil:
		c.Loss = *loss
	case t.cut[way]:
		c.Loss = 1
	}
	if latency != nil {
		c.Latency = *latency
	}
	if loss != nil && latency != nil && *loss == 0 && *latency == 0 {
		c = t.every
	}
	t.own[way] = c
	if delete(t.cut, way); c.Loss == 1 {
		t.cut[way] = true
	}
	if err := t.net.SetLink(t.names[from], t.names[to], c); err != nil {
		return err
	}
	return t.apply()
}

func (t *topology) cutOneWay(from, to int) error {
	t.cut[[2]int{from, to}] = true
	return t.net.CutOneWay(t.names[from], t.names[to])
}

// apply makes the real network what is said here. Single links are cut anew: memnet forgets them with each
// partition.
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
