package scenario

import (
	"fmt"
	"slices"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
)

// names knows the nodes and the zones of a scenario.
type names struct {
	// nodes are those of the start, then those that join, in the order of the file.
	nodes []Node
	start int
	index map[string]int
	zones map[string][]int
	// unknowns counts the names that were not found.
	unknowns int
}

// Members are the names of all members: those of the start, then those that join, in the order of the file.
func (s *Scenario) Members() (all []string) {
	for _, n := range s.names().nodes {
		all = append(all, n.Name)
	}
	return all
}

func (s *Scenario) names() *names {
	n := &names{nodes: slices.Clone(s.Cluster.Nodes.All()), index: make(map[string]int), zones: make(map[string][]int)}
	n.start = len(n.nodes)
	for i, node := range n.nodes {
		if _, twice := n.index[node.Name]; !twice {
			n.index[node.Name] = i
		}
		if node.Zone != "" {
			n.zones[node.Zone] = append(n.zones[node.Zone], i)
		}
	}
	for i := range s.Steps {
		if j := s.Steps[i].Join; j != nil {
			if _, known := n.index[*j]; !known {
				n.index[*j] = len(n.nodes)
				n.nodes = append(n.nodes, Node{Name: *j})
			}
		}
	}
	// A node that comes back under another name is the same machine. A name that a node has already stays
	// with that node.
	for i := range s.Steps {
		if st := &s.Steps[i]; st.As != nil && st.Restart != nil {
			if _, taken := n.index[*st.As]; !taken {
				if at, known := n.index[*st.Restart]; known {
					n.index[*st.As] = at
				}
			}
		}
	}
	return n
}

// suggestions bounds for how many unknown names the nearest one is looked for, which takes a look at all
// names.
const suggestions = 20

// unknown returns nil if name is that of a node, or of a zone where those are accepted.
func (n *names) unknown(name string, zones bool) error {
	if _, ok := n.index[name]; ok {
		return nil
	}
	if in, ok := n.zones[name]; ok {
		if zones {
			return nil
		}
		return fmt.Errorf("%s is a zone, and here stands one member, such as %s", name, n.nodes[in[0]].Name)
	}
	if n.unknowns++; n.unknowns > suggestions {
		return fmt.Errorf("no member is called %.40q", name)
	}
	known := make([]string, 0, len(n.nodes))
	for _, node := range n.nodes {
		known = append(known, node.Name)
	}
	for zone := range n.zones {
		if zones {
			known = append(known, zone)
		}
	}
	slices.Sort(known)
	if near, _ := strictyaml.Nearest(name, known); near != "" {
		return fmt.Errorf("no member is called %.40q; the nearest name is %s", name, near)
	}
	return fmt.Errorf("no member is called %.40q", name)
}

// expand returns the nodes, by index, that a list of names and zones stands for.
func (n *names) expand(list []string) (nodes []int) {
	for _, name := range list {
		if i, ok := n.index[name]; ok {
			nodes = append(nodes, i)
		} else {
			nodes = append(nodes, n.zones[name]...)
		}
	}
	return nodes
}
