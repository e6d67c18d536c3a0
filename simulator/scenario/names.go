package scenario

import (
	"fmt"
	"slices"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
)

// Names are the nodes and the zones of a scenario.
type Names struct {
	// Nodes are the Start nodes of the start, then those that join, in the order of the file. Index is the
	// place of each there, also under the names that it has later.
	Nodes []Node
	Start int
	Index map[string]int
	zones map[string][]int
	// unknowns counts the names that were not found.
	unknowns int
}

// Members are the names of all members: those of the start, then those that join, in the order of the file.
func (s *Scenario) Members() (all []string) {
	for _, n := range s.Names().Nodes {
		all = append(all, n.Name)
	}
	return all
}

// Names reads them from the scenario.
func (s *Scenario) Names() *Names {
	n := &Names{Nodes: slices.Clone(s.Cluster.Nodes.All()), Index: make(map[string]int),
		zones: make(map[string][]int)}
	n.Start = len(n.Nodes)
	for i, node := range n.Nodes {
		if _, twice := n.Index[node.Name]; !twice {
			n.Index[node.Name] = i
		}
		if node.Zone != "" {
			n.zones[node.Zone] = append(n.zones[node.Zone], i)
		}
	}
	for i := range s.Steps {
		if j := s.Steps[i].Join; j != nil {
			if _, known := n.Index[*j]; !known {
				n.Index[*j] = len(n.Nodes)
				n.Nodes = append(n.Nodes, Node{Name: *j})
			}
		}
	}
	// A node that comes back under another name is the same machine. A name that a node has already stays
	// with that node.
	for i := range s.Steps {
		if st := &s.Steps[i]; st.As != nil && st.Restart != nil {
			if _, taken := n.Index[*st.As]; !taken {
				if at, known := n.Index[*st.Restart]; known {
					n.Index[*st.As] = at
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
func (n *Names) unknown(name string, zones bool) error {
	if _, ok := n.Index[name]; ok {
		return nil
	}
	if in, ok := n.zones[name]; ok {
		if zones {
			return nil
		}
		return fmt.Errorf("%s is a zone, and here stands one member, such as %s", name, n.Nodes[in[0]].Name)
	}
	if n.unknowns++; n.unknowns > suggestions {
		return fmt.Errorf("no member is called %.40q", name)
	}
	known := make([]string, 0, len(n.Nodes))
	for _, node := range n.Nodes {
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

// Expand returns the nodes, by index, that a list of names and zones stands for.
func (n *Names) Expand(list []string) (nodes []int) {
	for _, name := range list {
		if i, ok := n.Index[name]; ok {
			nodes = append(nodes, i)
		} else {
			nodes = append(nodes, n.zones[name]...)
		}
	}
	return nodes
}
