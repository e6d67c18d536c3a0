package scenario

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/serf-sbr/serf-sbr/internal/config"
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
	// these are always written
	d.Name, d.RunFor, d.Cluster.Nodes.Count = s.Name+"?", s.RunFor+1, s.Cluster.Nodes.Count+1
	d.Cluster.Settings = make(map[string]*config.SplitBrainResolver)
	for name := range s.Cluster.Settings {
		d.Cluster.Settings[name] = &s.Cluster.SplitBrainResolver
	}
	top := structure(reflect.ValueOf(s).Elem(), reflect.ValueOf(&d).Elem())
	for i := 0; i < len(top.Content); i += 2 {
		switch block := top.Content[i+1]; top.Content[i].Value {
		case "cluster":
			wide(block)
		case "expect": // over several lines, each of them in one
			for k := 1; k < len(block.Content); k += 2 {
				flow(block.Content[k])
			}
		}
	}
	return encode(top)
}

// encode writes the tree. Nothing in it can fail to be written.
func encode(n *yaml.Node) []byte {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(n); err != nil {
		panic(fmt.Sprintf("scenario: a scenario cannot be written: %v", err)) // only nodes of this file are in it
	}
	return out.Bytes()
}

// wide puts every mapping and list below n that fits into one line there.
func wide(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode || n.Style&yaml.FlowStyle != 0 {
		return
	}
	flow(n)
	if line := strings.TrimSpace(string(encode(n))); len(line) <= flowWidth && !strings.Contains(line, "\n") {
		return
	}
	n.Style &^= yaml.FlowStyle
	for _, c := range n.Content {
		wide(c)
	}
}

func flow(n *yaml.Node) *yaml.Node {
	if n.Kind != yaml.ScalarNode {
		n.Style |= yaml.FlowStyle
	}
	return n
}
