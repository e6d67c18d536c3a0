package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page, its style and its script
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"

	"github.com/serf-sbr/serf-sbr/simulator/internal/world"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// Run is one run.
type Run struct {
	scenario.Result
	// Sentence says what the scenario shows; empty: nothing is said.
	Sentence string
	// Replay is the command that plays the run again.
	Replay string
	// History is what happened, from scenario.Record. Nil: the run is listed, and not told.
	History *world.History
}

// What is told and listed at most, so that a browser can still open the page.
const (
	maxTold       = 200      // runs that are told if there are not more
	maxToldFailed = 1000     // failed ones, if there are
	maxToldPassed = 100      // passed ones, if there are: the first of each scenario
	maxToldBytes  = 40 << 20 // of all stories together
	maxListed     = 5000
)

// Keeper says of which of many runs the report has room for a history, so that the others need not be recorded: of up to 200 runs all; of more,
// the failed ones (up to 1000) and the first passed one of each scenario (up to 100).
type Keeper struct {
	total          int
	failed, passed int
	seen           map[string]bool
}

// NewKeeper returns a Keeper for so many runs.
func NewKeeper(total int) *Keeper { return &Keeper{total: total, seen: make(map[string]bool)} }

// Keep reports whether the history of this run is wanted. Call it once for each run.
func (k *Keeper) Keep(r *scenario.Result) bool {
	switch {
	case k.total <= maxTold:
		return true
	case !r.Passed:
		k.failed++
		return k.failed <= maxToldFailed
	case k.seen[r.Scenario] || k.passed >= maxToldPassed:
		return false
	default:
		k.seen[r.Scenario] = true
		k.passed++
		return true
	}
}

//go:embed page.gohtml
var pageText string

//go:embed report.css
var style string

//go:embed report.js
var script string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"number": number,
	"list":   nameList,
	"args": func(id string, s *story) any {
		return struct {
			ID    string
			Story *story
		}{id, s}
	},
	"marksAt": func(id string, y, middle int, m []markView) any {
		return struct {
			ID    string
			Y     int
			Marks []markView
		}{id, y + middle, m}
	},
}).Parse(pageText))

// pageView is what the page is made of.
type pageView struct {
	Policy template.HTML // a whole meta element: html/template would escape the quotes inside its attribute
	Style  template.CSS
	Script template.JS

	Total, Failed, Passed  int
	Listed                 []runView
	Unlisted, Told, Untold int
	First                  template.HTML
	Others                 []template.HTML
	Lives, Marks, Bands    []legend
	One                    bool
}

// runView is one run, in the list and as a story.
type runView struct {
	*Run
	Number int
	Told   bool
	Story  *story
}

// Write writes the report of runs; the failed ones come first. It returns the errors of w.
func Write(w io.Writer, runs []Run) error {
	sorted := make([]*Run, len(runs))
	for i := range runs {
		sorted[i] = &runs[i]
	}
	slices.SortStableFunc(sorted, func(a, b *Run) int { return rank(a) - rank(b) })
	v := pageView{
		Policy: policy(), Style: template.CSS(style), Script: template.JS(script), // our own files
		Total: len(runs), One: len(runs) == 1, Lives: lives, Marks: marks, Bands: bands,
	}
	size := 0
	for i, r := range sorted {
		if r.Passed {
			v.Passed++
		} else {
			v.Failed++
		}
		rv := runView{Run: r, Number: i}
		if told := r.History != nil && size < maxToldBytes; told || i == 0 {
			rv.Told = true
			text, err := tell(rv)
			if err != nil {
				return err
			}
			if size += len(text); i == 0 {
				v.First = text
			} else {
				v.Others = append(v.Others, text)
			}
			v.Told++
		}
		if len(v.Listed) < maxListed {
			v.Listed = append(v.Listed, rv)
		}
	}
	v.Unlisted, v.Untold = v.Total-len(v.Listed), v.Total-v.Told
	if err := page.ExecuteTemplate(w, "page", v); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// rank puts failed runs first.
func rank(r *Run) int {
	if r.Passed {
		return 1
	}
	return 0
}

// tell renders the story of one run.
func tell(v runView) (template.HTML, error) {
	if v.History != nil {
		v.Story = storyOf(v.History)
	}
	var b bytes.Buffer
	if err := page.ExecuteTemplate(&b, "run", v); err != nil {
		return "", fmt.Errorf("report: %s, seed %d: %w", v.Scenario, v.Seed, err)
	}
	return template.HTML(b.String()), nil // the template has escaped it
}

// policy lets the page load nothing, and run nothing but its own script.
func policy() template.HTML {
	return template.HTML(fmt.Sprintf( // hashes of our own files
		`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'">`,
		hash(style), hash(script)))
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// nameList shows names, a few of many.
func nameList(names []string) string {
	if len(names) == 0 {
		return "nobody"
	}
	nodes := make([]int, len(names))
	for i := range nodes {
		nodes[i] = i
	}
	return list(names, nodes)
}

// legend is one sign and what it means.
type legend struct{ Class, Text string }

var (
	lives = []legend{
		{"life-starting", "starting"}, {"life-arming", "arming"}, {"life-up", "up"}, {"life-suspended", "suspended"},
		{"life-waiting", "waiting for the lease"}, {"life-paused", "paused"}, {"life-down", "down"}, {"life-left", "left"}, {"life-crashed", "crashed"},
	}
	marks = []legend{
		{"decision", "decides"}, {"verdict", "writes a verdict"}, {"learnt", "learns a verdict"}, {"told", "tells others"},
		{"asked", "asks for the lease, or hears of it"}, {"broken", "a promise is broken"},
	}
	bands = []legend{
		{"network", "network cut"}, {"store", "lease store hurt"}, {"lease", "lease held"}, {"double", "two sides at work after a decision"},
		{"nobody", "nobody at work"},
	}
)
