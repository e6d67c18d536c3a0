package memnet

import "fmt"

// Partition leaves the hosts of one group connected to each other and to no other host. It replaces all cuts
// that were in force. Each known name must be in exactly one group, shut-down ones included; on an error
// nothing has changed.
func (n *Network) Partition(groups ...[]string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	side, err := n.sides(groups)
	if err != nil {
		return err
	}
	cuts := map[link]struct{}{}
	for _, a := range n.hosts {
		for _, b := range n.hosts {
			if side[a] != side[b] {
				cuts[link{a, b}] = struct{}{}
			}
		}
	}
	n.cuts = cuts
	n.pathsChanged()
	return nil
}

// sides maps each host to the number of its group.
func (n *Network) sides(groups [][]string) (map[*host]int, error) {
	side := map[*host]int{}
	for i, group := range groups {
		if len(group) == 0 {
			return nil, fmt.Errorf("memnet: partition: group %d is empty", i+1)
		}
		for _, name := range group {
			h, err := n.host(name)
			if err != nil {
				return nil, err
			}
			if _, twice := side[h]; twice {
				return nil, fmt.Errorf("memnet: partition: %q is named twice", name)
			}
			side[h] = i
		}
	}
	for _, h := range n.hosts {
		if _, ok := side[h]; !ok {
			return nil, fmt.Errorf("memnet: partition: %q is in no group", h.name)
		}
	}
	return side, nil
}

// Cut stops traffic between a and b, both ways, in addition to the cuts in force.
func (n *Network) Cut(a, b string) error {
	return n.editCuts(a, b, func(ab, ba link) {
		n.cuts[ab] = struct{}{}
		n.cuts[ba] = struct{}{}
	})
}

// CutOneWay stops traffic from one host to another and leaves the other direction as it is. Packets still
// flow that way; streams that are open move data that way only; a new stream needs both.
func (n *Network) CutOneWay(from, to string) error {
	return n.editCuts(from, to, func(there, _ link) {
		n.cuts[there] = struct{}{}
	})
}

// Mend undoes the cuts between a and b, both ways, however they were made.
func (n *Network) Mend(a, b string) error {
	return n.editCuts(a, b, func(ab, ba link) {
		delete(n.cuts, ab)
		delete(n.cuts, ba)
	})
}

// SetLink treats what one host sends to another as c says; c.Seed is not looked at. It holds until the next
// SetLink: partitions and Heal leave it as it is.
func (n *Network) SetLink(from, to string, c Config) error {
	if !c.possible() {
		return fmt.Errorf("memnet: impossible link: %+v", c)
	}
	return n.editCuts(from, to, func(there, _ link) { n.links[there] = c })
}

func (n *Network) editCuts(a, b string, edit func(ab, ba link)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	ha, err := n.host(a)
	if err != nil {
		return err
	}
	hb, err := n.host(b)
	if err != nil {
		return err
	}
	if ha == hb {
		return fmt.Errorf("memnet: %q cannot be cut from itself", a)
	}
	edit(link{ha, hb}, link{hb, ha})
	n.pathsChanged()
	return nil
}

// Heal undoes all cuts. Frozen hosts stay frozen.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.cuts)
	n.pathsChanged()
}

// Freeze makes a running host deaf and silent, until [Network.Thaw] or the shutdown of its transport.
// Packets to and from it wait, up to 1024 each way, then the newest are dropped; its streams
// stand still; streams to it can be opened and wait to be read. Freezing a frozen host changes nothing.
func (n *Network) Freeze(name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	h, err := n.host(name)
	if err != nil {
		return err
	}
	if h.running == nil {
		return fmt.Errorf("memnet: %q is not running and cannot be frozen", name)
	}
	h.frozen = true
	n.pathsChanged()
	return nil
}

// Thaw undoes [Network.Freeze]: what waited is handed over in its order, and what the host sent meanwhile
// leaves now, subject to the cuts of now. Thawing a host that is not frozen changes nothing.
func (n *Network) Thaw(name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	h, err := n.host(name)
	if err != nil {
		return err
	}
	if !h.frozen {
		return nil
	}
	out, in, streams := h.unfreeze()
	for _, d := range in {
		n.arrive(d)
	}
	for _, c := range streams {
		if !h.running.offer(c) {
			c.closeLocked()
		}
	}
	for _, d := range out {
		n.transmit(d)
	}
	n.pathsChanged()
	return nil
}

// unfreeze empties what waited into the caller's hands.
func (h *host) unfreeze() (out, in []*datagram, streams []*conn) {
	out, in, streams = h.heldOut, h.heldIn, h.heldStreams
	h.heldOut, h.heldIn, h.heldStreams = nil, nil, nil
	h.frozen = false
	return out, in, streams
}

func (n *Network) isCut(from, to *host) bool {
	_, cut := n.cuts[link{from, to}]
	return cut
}

// flows reports whether bytes of a stream move from one host to another.
func (n *Network) flows(from, to *host) bool {
	return !from.frozen && !to.frozen && !n.isCut(from, to)
}
