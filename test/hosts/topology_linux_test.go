package hosts_test

// topology is what the steps of a scenario have done to the network: a partition replaces the last one,
// single links stay cut until a heal.
type topology struct {
	group map[string]int // nodes of different groups cannot reach each other
	cut   map[[2]string]bool
}

func newTopology() *topology {
	return &topology{group: make(map[string]int), cut: make(map[[2]string]bool)}
}

// partition cuts the network into groups; nodes that are not named form one more.
func (t *topology) partition(groups [][]string) {
	clear(t.group)
	for g, nodes := range groups {
		for _, name := range nodes {
			t.group[name] = g + 1
		}
	}
}

func (t *topology) cutOneWay(from, to string) { t.cut[[2]string{from, to}] = true }

func (t *topology) heal() {
	clear(t.group)
	clear(t.cut)
}

// open is what lab.SetLinks asks; store is the host of the lease store, which no partition concerns.
func (t *topology) open(store string) func(from, to string) bool {
	return func(from, to string) bool {
		return from == store || to == store || t.group[from] == t.group[to] && !t.cut[[2]string{from, to}]
	}
}
