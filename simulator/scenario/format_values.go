package scenario

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
)

// formatter builds the tree of a file. It has no state: its methods only read well together.
type formatter struct{}

// mapping puts keys and values together.
func (f formatter) mapping(pairs ...[2]*yaml.Node) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode}
	for _, p := range pairs {
		f.add(m, p)
	}
	return m
}

func (formatter) add(m *yaml.Node, pair [2]*yaml.Node) {
	m.Content = append(m.Content, pair[0], pair[1])
}

func (f formatter) pair(key string, value *yaml.Node) [2]*yaml.Node {
	return [2]*yaml.Node{f.text(key), value}
}

// word is a scalar that is written as it is.
func (formatter) word(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }

// text is a scalar that stays text whatever it looks like: it is put in quotes where it needs them.
func (formatter) text(s string) *yaml.Node {
	s = strings.ToValidUTF8(s, "\uFFFD")
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	const merge = "<<" // the encoder does not know that it needs quotes
	if s == merge || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// differing adds a key if its value differs from its default. Both are pointers.
func (f formatter) differing(m *yaml.Node, key string, value, def any) {
	if n := f.differs(reflect.ValueOf(value).Elem(), reflect.ValueOf(def).Elem()); n != nil {
		f.add(m, f.pair(key, n))
	}
}

// plain writes a struct, without what equals its default; with a nil default, all of it. Both are pointers.
func (f formatter) plain(value, def any) *yaml.Node {
	m := f.mapping()
	if def == nil {
		f.structure(m, reflect.ValueOf(value).Elem(), reflect.Value{})
	} else {
		f.structure(m, reflect.ValueOf(value).Elem(), reflect.ValueOf(def).Elem())
	}
	return m
}

// differs is what must be written of v, nil for nothing. An invalid d is no default: everything is written.
func (f formatter) differs(v, d reflect.Value) *yaml.Node {
	if n := f.special(v); n != nil {
		if d.IsValid() && reflect.DeepEqual(v.Interface(), d.Interface()) {
			return nil
		}
		return n
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return f.differs(v.Elem(), reflect.Value{})
	case reflect.Struct:
		m := f.mapping()
		f.structure(m, v, d)
		if len(m.Content) == 0 && d.IsValid() {
			return nil
		}
		return m
	case reflect.Slice, reflect.Map:
		if v.Len() == 0 && d.IsValid() {
			return nil
		}
		return f.collection(v)
	default:
		if d.IsValid() && v.Equal(d) {
			return nil
		}
		return f.scalar(v)
	}
}

// special writes types that know how they are written.
func (f formatter) special(v reflect.Value) *yaml.Node {
	switch x := v.Interface().(type) {
	case time.Duration:
		return f.word(formatDuration(x))
	case Time:
		if x.Spread != 0 {
			return f.word(formatDuration(x.From) + rangeSign + formatDuration(x.Last()))
		}
		return f.word(formatDuration(x.From))
	case strictyaml.Span:
		if x != strictyaml.Infinite {
			return f.word(formatDuration(time.Duration(x)))
		}
		return f.word(x.String())
	case strictyaml.AutoDuration:
		if x != strictyaml.Auto {
			return f.word(formatDuration(time.Duration(x)))
		}
		return f.word(x.String())
	case strictyaml.OnOffDuration:
		if x.For != 0 {
			return f.word(formatDuration(x.For))
		}
		return f.word(x.String())
	case yaml.Marshaler:
		if v.Kind() == reflect.Pointer {
			return nil // its element comes by
		}
		if n, err := x.MarshalYAML(); err == nil {
			if n, ok := n.(*yaml.Node); ok {
				return n
			}
		}
	}
	return nil
}

// structure adds the fields of a struct in their order.
func (f formatter) structure(m *yaml.Node, v, d reflect.Value) {
	for i := range v.NumField() {
		key, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		var def reflect.Value
		if d.IsValid() {
			def = d.Field(i)
		}
		if slices.Contains(strings.Split(options, ","), "inline") {
			f.structure(m, v.Field(i), def)
		} else if n := f.differs(v.Field(i), def); n != nil {
			f.add(m, f.pair(key, n))
		}
	}
}

func (f formatter) collection(v reflect.Value) *yaml.Node {
	if v.Kind() == reflect.Slice {
		list := flow(&yaml.Node{Kind: yaml.SequenceNode})
		for i := range v.Len() {
			list.Content = append(list.Content, f.differs(v.Index(i), reflect.Value{}))
		}
		return list
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	m := f.mapping()
	for _, k := range keys {
		f.add(m, f.pair(k.String(), f.differs(v.MapIndex(k), reflect.Value{})))
	}
	return m
}

func (f formatter) scalar(v reflect.Value) *yaml.Node {
	switch {
	case v.Kind() == reflect.String:
		return f.text(v.String())
	case v.CanFloat():
		return f.word(strconv.FormatFloat(v.Float(), 'g', -1, 64))
	default:
		return f.word(fmt.Sprint(v.Interface()))
	}
}

// formatDuration writes a time as people do: 90s, 2.5s, 800ms, 20m, 5h. It reads back to the nanosecond.
func formatDuration(d time.Duration) string {
	const longer = 1000 * time.Second
	switch {
	case d < 0 && -d > 0:
		return "-" + formatDuration(-d)
	case d%time.Hour == 0 && d != 0:
		return fmt.Sprint(int64(d/time.Hour), "h")
	case d >= time.Second && d < longer:
		whole, rest := d/time.Second, d%time.Second
		s := fmt.Sprintf("%d.%09d", int64(whole), int64(rest))
		return strings.TrimSuffix(strings.TrimRight(s, "0"), ".") + "s"
	case d >= longer && d%time.Minute == 0:
		return fmt.Sprint(int64(d/time.Minute), "m")
	default:
		return d.String()
	}
}
