package strictyaml

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// Shape is how a value is written.
type Shape uint8

// The shapes of a value.
const (
	Scalar Shape = iota + 1
	List
	Mapping
)

// Variant is implemented, on a pointer, by a type that may be written in several shapes ("nodes: 5" or a list
// of nodes).
type Variant interface {
	// Target returns a pointer to what a value of that shape is decoded into, nil if the shape is not
	// accepted.
	Target(Shape) any
	// Expected says what is accepted, such as "a number or a list of nodes".
	Expected() string
}

var durationType = reflect.TypeFor[time.Duration]()

type decoder struct {
	problems Problems
	lines    map[string]int
	root     reflect.Type
}

func (d *decoder) fail(n *yaml.Node, path, format string, args ...any) {
	d.problems = append(d.problems, Problem{Line: n.Line, Path: path, Text: fmt.Sprintf(format, args...)})
}

// mismatch reports a value of the wrong type: what was expected, and what was found.
func (d *decoder) mismatch(n *yaml.Node, path, expected string) {
	d.fail(n, path, "expected %s, found %s", expected, describe(n))
}

func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "keys and values"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "nothing"
	case n.Tag == "!!str" && n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) == 0:
		return Quote(n.Value)
	case n.Tag == "!!str":
		return "the text " + Quote(n.Value)
	case n.Tag == "!!int", n.Tag == "!!float":
		return "the number " + shown(n.Value)
	default:
		return shown(n.Value)
	}
}

// shown is Quote without the quotes where the value needs none.
func shown(s string) string {
	q := Quote(s)
	return q[1 : len(q)-1]
}

func shapeOf(n *yaml.Node) Shape {
	switch n.Kind {
	case yaml.MappingNode:
		return Mapping
	case yaml.SequenceNode:
		return List
	default:
		return Scalar
	}
}

// value decodes n into v and records its line.
func (d *decoder) value(n *yaml.Node, v reflect.Value, path string) {
	if d.lines != nil && path != "" {
		d.lines[path] = n.Line
	}
	if v.CanAddr() {
		switch t := v.Addr().Interface().(type) {
		case Variant:
			d.variant(n, t, path)
			return
		case encoding.TextUnmarshaler:
			d.text(n, t, path)
			return
		}
	}
	kind, null := v.Kind(), n.Tag == "!!null"
	switch {
	case null && kind == reflect.Struct: // a heading whose keys are all commented out
	case null && (kind == reflect.Pointer || kind == reflect.Map || kind == reflect.Slice):
		v.SetZero()
	case (kind == reflect.Struct || kind == reflect.Map) && n.Kind != yaml.MappingNode:
		d.mismatch(n, path, "keys and values")
	case kind == reflect.Slice && n.Kind != yaml.SequenceNode:
		d.mismatch(n, path, "a list")
	case kind == reflect.Pointer:
		d.pointer(n, v, path)
	case kind == reflect.Struct:
		d.structure(n, v, path)
	case kind == reflect.Map:
		d.mapping(n, v, path)
	case kind == reflect.Slice:
		d.list(n, v, path)
	default:
		d.scalar(n, v, path)
	}
}

func (d *decoder) variant(n *yaml.Node, t Variant, path string) {
	target := t.Target(shapeOf(n))
	if target == nil || n.Tag == "!!null" {
		d.mismatch(n, path, t.Expected())
		return
	}
	d.value(n, reflect.ValueOf(target).Elem(), path)
}

func (d *decoder) text(n *yaml.Node, t encoding.TextUnmarshaler, path string) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		d.mismatch(n, path, expectedOf(t))
		return
	}
	if err := t.UnmarshalText([]byte(n.Value)); err != nil {
		d.fail(n, path, "%s", syntax(err))
	}
}

func expectedOf(t any) string {
	if e, ok := t.(interface{ Expected() string }); ok {
		return e.Expected()
	}
	return "a single value"
}

func (d *decoder) pointer(n *yaml.Node, v reflect.Value, path string) {
	fresh := reflect.New(v.Type().Elem())
	if !v.IsNil() {
		fresh.Elem().Set(v.Elem()) // never write through a pointer that a default may share
	}
	d.value(n, fresh.Elem(), path)
	v.Set(fresh)
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, path string) {
	fresh := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, c := range n.Content {
		d.value(c, fresh.Index(i), path+"["+strconv.Itoa(i)+"]")
	}
	v.Set(fresh)
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string) {
	fresh := reflect.MakeMapWithSize(v.Type(), len(n.Content)/2)
	d.pairs(n, path, func(key, val *yaml.Node) {
		name, elem := reflect.ValueOf(key.Value).Convert(v.Type().Key()), reflect.New(v.Type().Elem()).Elem()
		if def := v.MapIndex(name); def.IsValid() {
			elem.Set(def) // what the value leaves out stays
		}
		d.value(val, elem, join(path, key.Value))
		fresh.SetMapIndex(name, elem)
	})
	v.Set(fresh)
}

// pairs calls f for each key that is set once, and reports the others.
func (d *decoder) pairs(n *yaml.Node, path string, f func(key, val *yaml.Node)) {
	first := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		switch line, twice := first[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			d.fail(key, path, "a key must be a single word, found %s", describe(key))
		case twice:
			d.fail(key, join(path, key.Value), "set twice, first on line %d", line)
		default:
			first[key.Value] = key.Line
			f(key, val)
		}
	}
}

func join(path, key string) string {
	if path == "" {
		return name(key)
	}
	return path + "." + name(key)
}
