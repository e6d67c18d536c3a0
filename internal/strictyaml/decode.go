package strictyaml

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Options bound what Decode accepts. The zero value takes the defaults.
type Options struct {
	// Name is the name of the input in problems, such as a file name. Empty: problems carry the line alone.
	Name string
	// MaxBytes bounds the input. Zero: 1 MiB.
	MaxBytes int
	// Lines, when not nil, receives the line of each path that was decoded, so that later checks can name it.
	Lines map[string]int
}

// What else is bounded: the nesting, and roughly the number of values, one for so many bytes of MaxBytes.
// That keeps memory bounded, for a value takes far more room than its text.
const (
	maxDepth      = 32
	bytesForValue = 16
)

// Decode reads one YAML or JSON document into the value that into points to.
// The error is Problems, with everything that is wrong, in the order of the document.
// A document that cannot be read at all (size, syntax, depth, aliases) is one problem.
func Decode(data []byte, into any, opts Options) error {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		// a mistake of the program, not of the input
		panic(fmt.Sprintf("strictyaml: Decode needs a pointer, got %T", into))
	}
	opts.MaxBytes = cmp.Or(opts.MaxBytes, 1<<20)
	root, err := parse(data, opts)
	if err != nil {
		return Problems{*err}
	}
	d := decoder{lines: opts.Lines, root: target.Type().Elem()}
	d.value(root, target.Elem(), "")
	for i := range d.problems {
		d.problems[i].Name = opts.Name
	}
	return d.problems.Err()
}

// parse returns the root of the only document in data, or the one problem that makes it unreadable.
func parse(data []byte, opts Options) (root *yaml.Node, problem *Problem) {
	fail := func(line int, format string, args ...any) (*yaml.Node, *Problem) {
		return nil, &Problem{Name: opts.Name, Line: line, Text: fmt.Sprintf(format, args...)}
	}
	if len(data) > opts.MaxBytes {
		return fail(0, "the input is larger than %d bytes", opts.MaxBytes)
	}
	if n, most := separators(data), opts.MaxBytes/bytesForValue; n > most {
		return fail(0, "the input has too many values (about %d, at most %d are read)", n, most)
	}
	docs := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	switch err := next(docs, &doc); {
	case errors.Is(err, io.EOF):
		return fail(0, "the input is empty")
	case err != nil:
		return fail(0, "not YAML or JSON: %s", syntax(err))
	}
	if err := next(docs, &second); err == nil {
		return fail(second.Line, "a second document starts here, exactly one is expected")
	} else if !errors.Is(err, io.EOF) {
		return fail(0, "not YAML or JSON: %s", syntax(err))
	}
	root = doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return fail(0, "the input is empty")
	}
	if line, text := unsafeNode(root, maxDepth); text != "" {
		return fail(line, "%s", text)
	}
	return root, nil
}

// next reads one document. The parser is not ours, so a panic in it is an unreadable document, not a crash.
func next(docs *yaml.Decoder, doc *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the parser gave up: %v", r)
		}
	}()
	if err := docs.Decode(doc); err != nil {
		return err
	}
	if len(doc.Content) != 1 {
		return io.EOF
	}
	return nil
}

// separators counts the bytes without which there is no further value. A node takes about 200 bytes, so they
// are counted before the parser builds the tree.
func separators(data []byte) (n int) {
	for _, c := range data {
		switch c {
		case ',', ':', '\n', '[', '{':
			n++
		}
	}
	return n
}

// syntax returns the parser's message as one short line.
func syntax(err error) string {
	const limit = 200
	text := strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), "yaml: ")
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}

// unsafeNode looks for what is never expanded, and for nesting that is too deep. An empty text: all is well.
func unsafeNode(n *yaml.Node, depth int) (line int, text string) {
	switch {
	case depth < 0:
		return n.Line, "nested too deeply"
	case n.Kind == yaml.AliasNode:
		return n.Line, "aliases (*name) are not supported, write the value out"
	case n.Style&yaml.TaggedStyle != 0:
		return n.Line, "tags (!name) are not supported"
	case n.Kind == yaml.ScalarNode && n.Tag == "!!merge":
		return n.Line, "merge keys (<<) are not supported, write the keys out"
	}
	for _, c := range n.Content {
		if line, text = unsafeNode(c, depth-1); text != "" {
			return line, text
		}
	}
	return 0, ""
}
