package config

import (
	_ "embed"
	"reflect"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// Key is one key of sbr.yaml as people read about it: in the template of sbr config init, the JSON Schema and
// docs/configuration.md.
type Key struct {
	// Path is the key with the blocks that it is in, such as lease.kubernetes.namespace.
	Path string
	// Default is its value where the file does not set it, as YAML on one line. Empty: none, or Text says
	// what follows from it.
	Default string
	// Text is what it means, in sentences without markup.
	Text string
	// Block says that it holds other keys.
	Block bool
}

// Keys lists every key in the order of the file, blocks before what is in them. The times of a lease, which
// the block of an implementation may set for itself, are listed once.
func Keys() (keys []Key) {
	f := Default()
	var defaults yaml.Node
	if err := yaml.Unmarshal(f.Effective(), &defaults); err != nil {
		panic(err) // Effective writes YAML
	}
	var list func(t reflect.Type, at string, values *yaml.Node)
	list = func(t reflect.Type, at string, values *yaml.Node) {
		for field := range t.Fields() {
			name, rest, _ := strings.Cut(field.Tag.Get("yaml"), ",")
			switch {
			case rest == "inline" && strings.Contains(at, "."): // said under lease
				continue
			case rest == "inline":
				list(field.Type, at, values)
				continue
			case name == "" || name == "-":
				continue
			}
			k := Key{Path: strings.TrimPrefix(at+"."+name, "."), Block: isBlock(field.Type)}
			k.Text = texts()[k.Path]
			value := entry(values, name)
			if !k.Block && value != nil && !strings.Contains(k.Text, "Default:") &&
				!strings.HasPrefix(k.Text, "Required") {
				k.Default = oneLine(value)
			}
			keys = append(keys, k)
			if k.Block {
				list(field.Type, k.Path, value)
			}
		}
	}
	list(reflect.TypeFor[File](), "", defaults.Content[0])
	return keys
}

// isBlock tells structs that hold keys from those that are one value.
func isBlock(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.NumField() > 0 &&
		slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
			return f.Tag.Get("yaml") != ""
		})
}

// entry is the value under a key of a mapping, nil if it is not there.
func entry(mapping *yaml.Node, key string) *yaml.Node {
	if mapping == nil {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// oneLine is a value as YAML on one line.
func oneLine(n *yaml.Node) string {
	flow := *n
	flow.Style |= yaml.FlowStyle
	data, err := yaml.Marshal(&flow)
	if err != nil {
		panic(err) // it was read as YAML
	}
	return strings.TrimSpace(string(data))
}

//go:embed keys.yaml
var keysText []byte

// texts say what each key means.
var texts = sync.OnceValue(func() (texts map[string]string) {
	if err := yaml.Unmarshal(keysText, &texts); err != nil {
		panic(err) // a test reads it
	}
	return texts
})
