package scenario

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
)

// word is a scalar that is written as it is.
func word(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }

// text is a scalar that stays text whatever it looks like: it is put in quotes where it needs them.
func text(s string) *yaml.Node {
	s = strings.ToValidUTF8(s, "\uFFFD")
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	const merge = "<<" // the encoder does not know that it needs quotes
	if s == merge || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// structure writes a struct, without what equals its default. An invalid d is no default: all of it is
// written.
func structure(v, d reflect.Value) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode}
	for i := range v.NumField() {
		key, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		var def reflect.Value
		if d.IsValid() {
			def = d.Field(i)
		}
		if slices.Contains(strings.Split(options, ","), "inline") {
			m.Content = append(m.Content, structure(v.Field(i), def).Content...)
		} else if n := differs(v.Field(i), def); n != nil {
			m.Content = append(m.Content, text(key), n)
		}
	}
	return m
}

// differs is what must be written of v, nil for nothing.
func differs(v, d reflect.Value) *yaml.Node {
	if n := special(v); n != nil {
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
		if d.IsValid() {
			d = d.Elem()
		}
		return differs(v.Elem(), d)
	case reflect.Struct:
		if m := structure(v, d); len(m.Content) > 0 || !d.IsValid() {
			return m
		}
		return nil
	case reflect.Slice, reflect.Map:
		if v.Len() == 0 && d.IsValid() {
			return nil
		}
		return collection(v, d)
	default:
		if d.IsValid() && v.Equal(d) {
			return nil
		}
		return scalar(v)
	}
}

// special writes types that know how they are written, and those that are written in one way or another.
func special(v reflect.Value) *yaml.Node {
	switch x := v.Interface().(type) {
	case time.Duration:
		return word(formatDuration(x))
	case Time:
		if x.Spread != 0 {
			return word(formatDuration(x.From) + rangeSign + formatDuration(x.Last()))
		}
		return word(formatDuration(x.From))
	case Nodes:
		if x.List == nil {
			return word(fmt.Sprint(x.Count))
		}
		return collection(reflect.ValueOf(x.List), reflect.Value{})
	case Detection:
		if x.Profile == "" {
			return flow(structure(reflect.ValueOf(x.Times), reflect.Value{}))
		}
		return text(x.Profile)
	case StoreFault:
		if x.Kind == "" {
			return structure(reflect.ValueOf(x.Change), reflect.ValueOf(StoreChange{}))
		}
		return text(x.Kind)
	case strictyaml.Span:
		return timeOr(time.Duration(x), x == strictyaml.Infinite, x)
	case strictyaml.AutoDuration:
		return timeOr(time.Duration(x), x == strictyaml.Auto, x)
	case strictyaml.OnOffDuration:
		return timeOr(x.For, x.For == 0, x)
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

// timeOr is a time, or its word if it has one.
func timeOr(d time.Duration, named bool, name fmt.Stringer) *yaml.Node {
	if named {
		return word(name.String())
	}
	return word(formatDuration(d))
}

// collection writes a map, or a list in a line. Of structs in a list each has a line of its own, and what is
// zero in it is left out.
func collection(v, d reflect.Value) *yaml.Node {
	if v.Kind() == reflect.Map {
		m := &yaml.Node{Kind: yaml.MappingNode}
		byName := func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) }
		for _, k := range slices.SortedFunc(slices.Values(v.MapKeys()), byName) {
			var def reflect.Value
			if d.IsValid() {
				def = d.MapIndex(k)
			}
			if n := differs(v.MapIndex(k), def); n != nil {
				m.Content = append(m.Content, text(k.String()), n)
			}
		}
		return m
	}
	list := &yaml.Node{Kind: yaml.SequenceNode}
	if v.Type().Elem().Kind() != reflect.Struct {
		flow(list)
	}
	for _, x := range v.Seq2() {
		if x.Kind() == reflect.Struct {
			list.Content = append(list.Content, flow(structure(x, reflect.Zero(x.Type()))))
		} else {
			list.Content = append(list.Content, differs(x, reflect.Value{}))
		}
	}
	return list
}

func scalar(v reflect.Value) *yaml.Node {
	switch {
	case v.Kind() == reflect.String:
		return text(v.String())
	case v.CanFloat():
		return word(strconv.FormatFloat(v.Float(), 'g', -1, 64))
	default:
		return word(fmt.Sprint(v.Interface()))
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
