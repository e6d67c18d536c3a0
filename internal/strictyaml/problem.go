package strictyaml

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxProblems bounds what one error reports: beyond it the input is not a configuration with mistakes but
// something else.
const maxProblems = 20

// Problem is one thing that is wrong with the input. Each prints as one line.
type Problem struct {
	// Name is the name of the input, empty when it has none.
	Name string
	// Line is the line of the key or value, counted from 1; zero when the problem has no line (a key that is
	// missing).
	Line int
	// Path is the place, such as lease.kubernetes.namespace or members[2].status. Empty: the whole document.
	Path string
	// Text says what is wrong, in one line.
	Text string
}

// Error returns name:line: path: text, without the parts that are unknown.
func (p Problem) Error() string {
	var b strings.Builder
	switch {
	case p.Name != "" && p.Line > 0:
		fmt.Fprintf(&b, "%s:%d: ", p.Name, p.Line)
	case p.Name != "":
		b.WriteString(p.Name + ": ")
	case p.Line > 0:
		fmt.Fprintf(&b, "line %d: ", p.Line)
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Text)
	return b.String()
}

// Problems is everything that is wrong with one input. A nil Problems is no error: use Err.
type Problems []Problem

// Error returns all problems, one line each.
func (ps Problems) Error() string { return strings.Join(ps.Lines(), "\n") }

// Lines returns one line a problem; a long list ends with the number of those left out.
func (ps Problems) Lines() []string {
	lines := make([]string, 0, min(len(ps), maxProblems)+1)
	for i, p := range ps {
		if i == maxProblems {
			return append(lines, fmt.Sprintf("and %d problems more", len(ps)-i))
		}
		lines = append(lines, p.Error())
	}
	return lines
}

// Add appends a problem at path.
func (ps *Problems) Add(path, format string, args ...any) {
	*ps = append(*ps, Problem{Path: path, Text: fmt.Sprintf(format, args...)})
}

// OneOf appends a problem at path unless word is known.
func (ps *Problems) OneOf(path, word string, known []string) {
	if err := OneOf(word, known); err != nil {
		ps.Add(path, "%v", err)
	}
}

// Err returns ps as an error, nil when there is no problem.
func (ps Problems) Err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

// Locate returns ps in the order of the input, with its name and the lines that Options.Lines collected. A
// path that was not in the input gets the line of the nearest enclosing path that was; problems without a
// line come first.
func (ps Problems) Locate(name string, lines map[string]int) Problems {
	located := slices.Clone(ps)
	for i := range located {
		p := &located[i]
		p.Name = name
		for at := p.Path; p.Line == 0 && at != ""; at = parent(at) {
			p.Line = lines[at]
		}
	}
	slices.SortStableFunc(located, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return located
}

func parent(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

// Quote shows a piece of input: one line, and short whatever the input was.
func Quote(s string) string {
	const limit = 40
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}

// name shows a key within a path: plain where it can be read, quoted otherwise.
func name(key string) string {
	const limit = 64
	plain := func(r rune) bool { return r > ' ' && r != '"' && r != 0x7f && r < 0xfffd }
	if key == "" || len(key) > limit || strings.ContainsFunc(key, func(r rune) bool { return !plain(r) }) {
		return Quote(key)
	}
	return key
}
