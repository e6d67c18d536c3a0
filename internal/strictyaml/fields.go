package strictyaml

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"go.yaml.in/yaml/v3"
)

// field is a key of a struct, with the index path that reaches it through inlined structs.
type field struct {
	key   string
	index []int
}

// fieldsOf lists the keys of a struct type in the order of its fields.
func fieldsOf(t reflect.Type) (fields []field) {
	for i := range t.NumField() {
		f := t.Field(i)
		key, rest, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case !f.IsExported() || key == "-":
		case slices.Contains(strings.Split(rest, ","), "inline"):
			for _, in := range fieldsOf(f.Type) {
				fields = append(fields, field{in.key, append([]int{i}, in.index...)})
			}
		case key != "":
			fields = append(fields, field{key, []int{i}})
		}
	}
	return fields
}

func (d *decoder) structure(n *yaml.Node, v reflect.Value, path string) {
	fields := fieldsOf(v.Type())
	d.pairs(n, path, func(key, val *yaml.Node) {
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == key.Value })
		if i < 0 {
			d.unknown(key, path, fields)
			return
		}
		d.value(val, v.FieldByIndex(fields[i].index), join(path, key.Value))
	})
}

// unknown reports a key that does not exist here: it names the place where it does exist, or else the nearest
// known key.
func (d *decoder) unknown(key *yaml.Node, path string, fields []field) {
	at := join(path, key.Value)
	if len(d.problems) > maxProblems {
		d.fail(key, at, "unknown key")
		return
	}
	var known []string
	for _, f := range fields {
		known = append(known, f.key)
	}
	nearest, near := Nearest(key.Value, known)
	switch elsewhere := find(d.root, key.Value, "", nil); {
	case nearest == "":
		d.fail(key, at, "unknown key, none is expected here")
	case !near && elsewhere != "":
		d.fail(key, at, "unknown key here; the nearest known key is %s", elsewhere)
	default:
		d.fail(key, at, "unknown key; the nearest known key is %s", nearest)
	}
}

// find returns the path of the first key of that name below t, "" if there is none. Parents guard against
// recursive types.
func find(t reflect.Type, key, path string, parents []reflect.Type) string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || slices.Contains(parents, t) {
		return ""
	}
	parents = append(parents, t)
	fields := fieldsOf(t)
	for _, f := range fields {
		if f.key == key {
			return join(path, key)
		}
	}
	for _, f := range fields {
		if at := find(t.FieldByIndex(f.index).Type, key, join(path, f.key), parents); at != "" {
			return at
		}
	}
	return ""
}

// Nearest returns the known word with the smallest edit distance to word, the first of equals; one that word is
// a part of counts as near. near says that it is close enough to be a misspelling. Without known words it
// returns "".
func Nearest(word string, known []string) (nearest string, near bool) {
	const limit = 64 // longer input is no misspelling; the distance takes quadratic time
	word = strings.ToLower(strings.ToValidUTF8(word[:min(len(word), limit)], ""))
	best := -1
	for _, k := range known {
		lower := strings.ToLower(k)
		d := levenshtein.ComputeDistance(word, lower)
		if len(word) > 2 && strings.Contains(lower, word) {
			d = 1 // quorum is short of quorum-size, and no closer to it than to role
		}
		if best < 0 || d < best {
			nearest, best = k, d
		}
	}
	return nearest, best >= 0 && best <= max(2, len(nearest)/3)
}

// OneOf returns nil if word is known, and otherwise an error that names the nearest known word and lists all
// of them.
func OneOf(word string, known []string) error {
	if slices.Contains(known, word) {
		return nil
	}
	list := strings.Join(known, ", ")
	if nearest, near := Nearest(word, known); near {
		return fmt.Errorf("%s is unknown; the nearest is %s (known are %s)", Quote(word), nearest, list)
	}
	return fmt.Errorf("%s is unknown; known are %s", Quote(word), list)
}
