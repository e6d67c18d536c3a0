package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// page is one page of the documentation, its path as seen from this folder.
type page struct {
	path, text string
}

func pages(t *testing.T) (all []page) {
	t.Helper()
	paths, err := filepath.Glob("*.md")
	require.NoError(t, err)
	for _, path := range append(paths, "../README.md", "../CONTRIBUTING.md", "../SECURITY.md", "../CHANGELOG.md") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		all = append(all, page{path, string(text)})
	}
	return all
}

// block is a fenced block of code.
type block struct {
	page     page
	language string
	from     string // the comment before it, which names its source
	text     string
}

var fence = regexp.MustCompile("(?ms)^(?:<!-- ([^\n]*) -->\n)?```([a-z]*)\n(.*?)^```$")

func (p page) blocks() (all []block) {
	for _, m := range fence.FindAllStringSubmatch(p.text, -1) {
		all = append(all, block{page: p, from: m[1], language: m[2], text: m[3]})
	}
	return all
}

// prose is the page without its blocks of code.
func (p page) prose() string { return fence.ReplaceAllString(p.text, "") }

func blocks(t *testing.T, language string) (all []block) {
	t.Helper()
	for _, p := range pages(t) {
		for _, b := range p.blocks() {
			if b.language == language {
				all = append(all, b)
			}
		}
	}
	require.NotEmpty(t, all, language)
	return all
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Every relative link leads to a file that is there, and to a heading that it has.
func TestLinks(t *testing.T) {
	for _, p := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(p.prose(), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			target := p.path
			if path != "" {
				target = filepath.Join(filepath.Dir(p.path), path)
			}
			text, err := os.ReadFile(target)
			require.NoError(t, err, "%s: %s", p.path, m[1])
			if anchor != "" {
				require.Contains(t, anchors(string(text)), anchor, "%s: %s", p.path, m[1])
			}
		}
	}
}

func anchors(text string) (slugs []string) {
	for _, m := range heading.FindAllStringSubmatch(page{text: text}.prose(), -1) {
		slug := noSlug.ReplaceAllString(strings.ToLower(m[1]), "")
		slugs = append(slugs, strings.ReplaceAll(slug, " ", "-"))
	}
	return slugs
}

var (
	testName = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9_]*)`")
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
)

// Tests that a page names as a proof exist.
func TestNamedTestsExist(t *testing.T) {
	var known []string
	require.NoError(t, filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			known = append(known, m[1])
		}
		return err
	}))
	for _, p := range pages(t) {
		for _, m := range testName.FindAllStringSubmatch(p.text, -1) {
			require.True(t, slices.Contains(known, m[1]), "%s names the test %s", p.path, m[1])
		}
	}
}
