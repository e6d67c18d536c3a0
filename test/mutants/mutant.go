package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// mutant is one seeded bug.
type mutant struct {
	Name string
	// What says what the bug is and what it may lead to.
	What string
	// Promise is what it endangers: one of promises.
	Promise string
	// Checkers are the promises that checkers of the simulator must report as broken, all of them. None: any
	// failure will do.
	Checkers []string
	// Blind is why the simulator by itself cannot see it. Empty: it must.
	Blind string
	// Hangs says that running out of time is how this one shows.
	Hangs bool
	// Quick mutants are those of --quick.
	Quick bool
	Edits []edit
}

// edit replaces lines of a file; they must occur in it exactly once.
type edit struct {
	File     string
	Old, New string
}

// promises are those of the design, and the three that the simulator adds.
var promises = []string{"S1", "S2", "S3", "S4", "S5", "L1", "L2", "L3", "F1", "stable", "explained", "chain",
	"X1", "X2", "X3", "X4", "X5", "X6",
	"Y1", "Y2", "Y3", "Y4", "Y5", "Y6"}

// errMutant is wrapped by every error about a mutant itself.
var errMutant = errors.New("bad mutant")

func (m *mutant) bad(format string, args ...any) error {
	return fmt.Errorf("%w %s: %s", errMutant, m.Name, fmt.Sprintf(format, args...))
}

// becomes is the name of the part that replaces the part before it.
const becomes = "becomes"

// parseMutant reads a mutant: sentences, then "key: value" lines, then pairs of parts, the lines as they are
// and as they become.
//
//	A verdict that was read is not looked at.
//	promise: S2
//	-- sbr/standing.go --
//		if r.standing() != Out {
//	-- becomes --
//		if r.standing() != Out || r.race != nil {
//
// The keys: promise (required), checker (of the simulator, more than one with spaces between), simulator
// (blind, and why), hang (true), quick (true).
func parseMutant(name string, data []byte) (*mutant, error) {
	m := &mutant{Name: name}
	archive := txtar.Parse(data)
	if err := m.header(string(archive.Comment)); err != nil {
		return nil, err
	}
	if len(archive.Files) == 0 || len(archive.Files)%2 != 0 {
		return nil, m.bad("it needs pairs of parts: `-- path/of/file.go --` with the lines as they are, `-- %s --` with what they turn into", becomes)
	}
	for pair := range slices.Chunk(archive.Files, 2) {
		e := edit{File: pair[0].Name, Old: string(pair[0].Data), New: string(pair[1].Data)}
		switch {
		case pair[1].Name != becomes:
			return nil, m.bad("after `-- %s --` must come `-- %s --`, not `-- %s --`", e.File, becomes, pair[1].Name)
		case !filepath.IsLocal(e.File):
			return nil, m.bad("%q is not a path inside the module", e.File)
		case strings.TrimSpace(e.Old) == "":
			return nil, m.bad("the lines of %s that it replaces are missing", e.File)
		case e.Old == e.New:
			return nil, m.bad("it changes nothing in %s", e.File)
		}
		m.Edits = append(m.Edits, e)
	}
	return m, nil
}

func (m *mutant) header(text string) error {
	var checkers string
	keys := map[string]*string{"promise": &m.Promise, "checker": &checkers, "simulator": &m.Blind}
	flags := map[string]*bool{"hang": &m.Hangs, "quick": &m.Quick}
	var what []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		key, value, _ := strings.Cut(line, ": ")
		switch flag, to := flags[key], keys[key]; {
		case to != nil && *to == "":
			*to = strings.TrimSpace(value)
		case flag != nil && value == "true":
			*flag = true
		case flag != nil, to != nil:
			return m.bad("%q: a flag is true or absent, and a key comes once", line)
		case m.Promise != "":
			return m.bad("%q: the sentences come before the keys promise, checker, simulator, hang and quick", line)
		case line != "":
			what = append(what, line)
		}
	}
	m.What = strings.Join(what, " ")
	m.Checkers = strings.Fields(checkers)
	blind, why, _ := strings.Cut(m.Blind, ", ")
	switch {
	case !strings.HasSuffix(m.What, "."):
		return m.bad("it opens with a sentence that says what the bug is")
	case !slices.Contains(promises, m.Promise):
		return m.bad("promise is %q: it must be one of %s", m.Promise, strings.Join(promises, ", "))
	case m.Blind != "" && (blind != "blind" || why == ""):
		return m.bad("simulator is %q: it must be `blind, ` and why, or absent", m.Blind)
	case m.Blind != "" && len(m.Checkers) > 0:
		return m.bad("it names a checker of the simulator, and says that the simulator cannot see it")
	}
	m.Blind = why
	return nil
}

// apply returns the changed files by their paths in the module.
func (m *mutant) apply(root string) (map[string][]byte, error) {
	files := make(map[string][]byte)
	for _, e := range m.Edits {
		text, ok := files[e.File]
		if !ok {
			var err error
			if text, err = os.ReadFile(filepath.Join(root, e.File)); err != nil {
				return nil, m.bad("it does not apply: %v: name the file where the code lives now", err)
			}
		}
		// With a line end in front, so that only whole lines match.
		lines, old := append([]byte("\n"), text...), []byte("\n"+e.Old)
		if n := count(lines, old); n != 1 {
			return nil, m.bad("it does not apply: %s holds its lines %d times, not once: copy the present lines, with more around them if "+
				"they repeat; or delete the mutant if that bug cannot be made any more", e.File, n)
		}
		files[e.File] = bytes.Replace(lines, old, []byte("\n"+e.New), 1)[1:]
	}
	return files, nil
}

// packages are the packages that the mutant changes.
func (m *mutant) packages() (pkgs []string) {
	for _, e := range m.Edits {
		if dir := "./" + path.Dir(e.File); !slices.Contains(pkgs, dir) {
			pkgs = append(pkgs, dir)
		}
	}
	return pkgs
}

// changes reports whether the mutant changes a file below the folder.
func (m *mutant) changes(folder string) bool {
	return slices.ContainsFunc(m.Edits, func(e edit) bool { return strings.HasPrefix(e.File, folder+"/") })
}

// count counts occurrences, also those that share a line end.
func count(text, part []byte) (n int) {
	for i := bytes.Index(text, part); i >= 0; n++ {
		text = text[i+1:]
		i = bytes.Index(text, part)
	}
	return n
}

// loadMutants reads all mutants of a folder, in the order of their names. It returns what is wrong with all
// of them at once.
func loadMutants(dir string) ([]*mutant, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%w: no file %s", errMutant, filepath.Join(dir, "*.txtar"))
	}
	var all []*mutant
	var errs []error
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		m, err := parseMutant(strings.TrimSuffix(filepath.Base(path), ".txtar"), data)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, m)
	}
	return all, errors.Join(errs...)
}
