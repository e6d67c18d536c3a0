package config

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
)

// maxBytes is the largest configuration that is read.
const maxBytes = 1 << 20

// Load reads and validates the file at path.
func Load(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return Parse(path, data)
}

// Parse decodes data over Default and validates the result. The error is strictyaml.Problems; name stands in
// front of each.
func Parse(name string, data []byte) (*File, error) {
	f := Default()
	lines := make(map[string]int)
	err := strictyaml.Decode(data, &f, strictyaml.Options{Name: name, MaxBytes: maxBytes, Lines: lines})
	if err != nil {
		return nil, err
	}
	f.name = name
	_, f.leaseNamed = lines[implementationKey]
	if err := f.problems().Locate(name, lines).Err(); err != nil {
		return nil, err
	}
	return &f, nil
}

//go:embed sbr.schema.json
var schema []byte

// Schema is the JSON Schema (draft 2020-12) of sbr.yaml, for editors. It is made from the types of this
// package, by the generator of the schema of scenario files, which have the same blocks; a test there keeps
// it current. It accepts whatever Parse accepts.
func Schema() []byte { return slices.Clone(schema) }

// Template is a commented sbr.yaml with every key. Those in set, by their paths, have that value; all others
// are comments that show the default, where there is one. It is an error if the file does not validate, or a
// path is no key.
func Template(set map[string]string) ([]byte, error) {
	unknown := maps.Clone(set)
	active := make(map[string]bool) // a key that is set, and the blocks around it
	for path := range set {
		for at := path; at != ""; at = at[:max(0, strings.LastIndex(at, "."))] {
			active[at] = true
		}
	}
	var b strings.Builder
	for _, k := range Keys() {
		delete(unknown, k.Path)
		depth := strings.Count(k.Path, ".")
		indent, name := strings.Repeat("  ", depth), k.Path[strings.LastIndex(k.Path, ".")+1:]
		if b.Len() > 0 && depth == 0 {
			b.WriteString("\n")
		}
		for _, line := range wrap(k.Text, templateWidth-len(indent)) {
			fmt.Fprintf(&b, "%s# %s\n", indent, line)
		}
		if !active[k.Path] {
			indent += "#"
		}
		value := k.Default
		if v, ok := set[k.Path]; ok {
			value = cmp.Or(v, `""`)
		}
		fmt.Fprintln(&b, strings.TrimRight(indent+name+": "+value, " "))
	}
	for path := range unknown {
		return nil, fmt.Errorf("%s: unknown key", path)
	}
	_, err := Parse("the file", []byte(b.String()))
	return []byte(b.String()), err
}

// templateWidth is how long a comment of the template may be.
const templateWidth = 100

// wrap breaks a text into lines of at most so many bytes, where it has spaces for that.
func wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}
