package scenario

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// flowWidth is how long a line may become before a block is written over several lines. A step is always one
// line.
const flowWidth = 100

// Format writes a scenario as a file that people read and that Parse reads back: what equals Default is left
// out, keys come in the order of the contract, a step is one line. Equal scenarios give equal bytes.
//
// Parse gives the same scenario for whatever validates, has a name, and is not larger than what Parse reads
// (MaxBytes). A scenario that does not validate is written all the same, for people to look at. Format only
// reads s.
func Format(s *Scenario) []byte {
	d := Default()
	var f formatter
	top := f.mapping(
		f.pair("name", f.text(s.Name)),
		f.pair("cluster", f.wide(f.cluster(&s.Cluster, &d.Cluster))),
	)
	if len(s.Steps) > 0 {
		steps := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range s.Steps {
			steps.Content = append(steps.Content, flow(f.step(&s.Steps[i])))
		}
		f.add(top, f.pair("steps", steps))
	}
	f.add(top, f.pair("run-for", f.word(formatDuration(s.RunFor))))
	if e := f.expect(&s.Expect); len(e.Content) > 0 {
		f.add(top, f.pair("expect", e))
	}
	return f.encode(top)
}

func (f formatter) cluster(c, d *Cluster) *yaml.Node {
	m := f.mapping()
	if c.System != d.System {
		f.add(m, f.pair("system", f.text(c.System)))
	}
	f.add(m, f.pair("nodes", f.nodes(&c.Nodes)))
	f.differing(m, "split-brain-resolver", &c.SplitBrainResolver, &d.SplitBrainResolver)
	f.differing(m, "lease", &c.Lease, &d.Lease)
	switch {
	case c.Detection.Profile == "":
		f.add(m, f.pair("detection", flow(f.plain(&c.Detection.Times, nil))))
	case c.Detection.Profile != d.Detection.Profile:
		f.add(m, f.pair("detection", f.text(c.Detection.Profile)))
	}
	f.differing(m, "network", &c.Network, &d.Network)
	f.differing(m, "reap-after", &c.ReapAfter, &d.ReapAfter)
	if len(c.Settings) > 0 {
		own := f.mapping()
		for _, name := range slices.Sorted(maps.Keys(c.Settings)) {
			f.add(own, f.pair(name, f.plain(c.Settings[name], &c.SplitBrainResolver)))
		}
		f.add(m, f.pair("settings", own))
	}
	if len(c.Singletons) > 0 {
		f.add(m, f.pair("singletons", lines(f, c.Singletons)))
	}
	if len(c.Shards) > 0 {
		f.add(m, f.pair("shards", lines(f, c.Shards)))
	}
	return m
}

// nodes are always written, also where they are the default: without them no file can be read.
func (f formatter) nodes(n *Nodes) *yaml.Node {
	if n.List == nil {
		return f.word(fmt.Sprint(n.Count))
	}
	return lines(f, n.List)
}

// lines are structs, each in a line, without what is zero in them.
func lines[T any](f formatter, all []T) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for i := range all {
		list.Content = append(list.Content, flow(f.plain(&all[i], new(T))))
	}
	return list
}

// step writes `at` first, then the action, then what belongs to it.
func (f formatter) step(st *Step) *yaml.Node {
	rest := *st
	rest.LeaseStore, rest.Nodes, rest.For = nil, nil, nil
	m := f.plain(&rest, new(Step))
	if st.LeaseStore != nil {
		fault := f.text(st.LeaseStore.Kind)
		if st.LeaseStore.Kind == "" {
			fault = f.plain(&st.LeaseStore.Change, new(StoreChange))
		}
		f.add(m, f.pair("lease-store", fault))
	}
	f.differing(m, "nodes", &st.Nodes, new(*[]string))
	f.differing(m, "for", &st.For, new(*Time))
	return m
}

// expect is written over several lines, each of them in one.
func (f formatter) expect(e *Expect) *yaml.Node {
	m := f.plain(e, new(Expect))
	for i := 1; i < len(m.Content); i += 2 {
		flow(m.Content[i])
	}
	return m
}

// encode writes the tree. Nothing in it can fail to be written.
func (formatter) encode(n *yaml.Node) []byte {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(n); err != nil {
		panic(fmt.Sprintf("scenario: a scenario cannot be written: %v", err)) // only nodes of this file are in it
	}
	return out.Bytes()
}

// wide puts every mapping and list below n that fits into one line there.
func (f formatter) wide(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.ScalarNode || n.Style&yaml.FlowStyle != 0 {
		return n
	}
	flow(n)
	if line := strings.TrimSpace(string(f.encode(n))); len(line) <= flowWidth && !strings.Contains(line, "\n") {
		return n
	}
	n.Style &^= yaml.FlowStyle
	for _, c := range n.Content {
		f.wide(c)
	}
	return n
}

func flow(n *yaml.Node) *yaml.Node {
	if n.Kind != yaml.ScalarNode {
		n.Style |= yaml.FlowStyle
	}
	return n
}
