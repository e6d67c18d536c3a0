package report

import (
	"crypto/sha256"
	_ "embed" // the page, its style and its script
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// Run is one run.
type Run struct {
	scenario.Result
	// File is where the scenario comes from: runs of different files are never one group.
	File string
	// Sentence says what the scenario shows; empty: nothing is said.
	Sentence string
	// Replay is the command that plays the run again.
	Replay string
}

// What is drawn and listed at most, so that a browser can still open the page.
const (
	maxEvents = 1200     // of one run: a page of one run has at most 200 kB
	maxBytes  = 16 << 20 // of all runs that are drawn and passed, and again of those that failed
	maxListed = 2000     // groups
	maxRanges = 30       // of seeds of one group
	parts     = 24       // of a histogram
)

// Page gathers runs. The zero Page is not ready for use: see New.
type Page struct {
	groups       []*group
	index        map[string]*group
	runs, failed int
	bytes        map[bool]int // of the runs that are drawn, by whether they passed
}

// group are runs of one file that came to the same.
type group struct {
	Sentence string `json:"sentence,omitempty"`
	Replay   string `json:"replay"` // of the first run
	Runs     int    `json:"runs"`
	Seeds    string `json:"seeds"`

	Resolved scenario.Spread `json:"resolved-after"` // of the runs that were resolved; all in seconds
	Double   scenario.Spread `json:"double-active"`
	Nobody   scenario.Spread `json:"nobody-active"`

	// Run is the first run, as sbr simulate -o json has it; without history if there was no room.
	Run json.RawMessage `json:"run"`
	// Left is how many of its events are not told.
	Left int `json:"events-left,omitempty"`

	passed                   bool
	seeds                    []seedRange
	resolved, double, nobody []float64
}

type seedRange struct{ from, to uint64 }

// New returns a page without runs.
func New() *Page { return &Page{index: make(map[string]*group), bytes: make(map[bool]int)} }

// Add adds a run. If it is the first one of its group, and has no history, full is called for the same run
// with one.
func (p *Page) Add(r Run, full func() scenario.Result) error {
	p.runs++
	if !r.Passed {
		p.failed++
	}
	key := keyOf(&r)
	g := p.index[key]
	if g == nil {
		g = &group{Sentence: r.Sentence, Replay: r.Replay, passed: r.Passed}
		p.index[key], p.groups = g, append(p.groups, g)
		if err := p.draw(g, r, full); err != nil {
			return err
		}
	}
	g.add(&r)
	return nil
}

// keyOf is the same for runs that came to the same.
func keyOf(r *Run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q %q %q %q", r.File, r.Scenario, r.Survivors, r.Down)
	for _, name := range slices.Sorted(maps.Keys(r.Decisions)) {
		fmt.Fprintf(&b, " %q %q", name, r.Decisions[name])
	}
	for _, f := range r.Failures {
		kind, _, _ := strings.Cut(f, ":") // the rest has times and names in it
		kind, _, _ = strings.Cut(kind, " at ")
		fmt.Fprintf(&b, " %q", kind)
	}
	return b.String()
}

// draw keeps the first run of a group, with its history if there is room.
func (p *Page) draw(g *group, r Run, full func() scenario.Result) error {
	told := r.Result
	if told.History == nil && p.bytes[r.Passed] < maxBytes {
		if told = full(); told.TraceHash != r.TraceHash && told.History != nil {
			return fmt.Errorf("report: %s, seed %d: played twice, and the runs differ: %s and %s", r.File, r.Seed,
				r.TraceHash, told.TraceHash)
		}
	}
	if told.History == nil {
		told = r.Result // a run that panics has none
	}
	told.Events, g.Left = tell(&told)
	text, err := json.Marshal(&told)
	if err != nil {
		return fmt.Errorf("report: %s, seed %d: %w", r.File, r.Seed, err)
	}
	if p.bytes[r.Passed]+len(text) > maxBytes && p.bytes[r.Passed] > 0 {
		told.History, told.Events, g.Left = nil, []scenario.Event{}, 0
		if text, err = json.Marshal(&told); err != nil {
			return fmt.Errorf("report: %s, seed %d: %w", r.File, r.Seed, err)
		}
	}
	p.bytes[r.Passed] += len(text)
	g.Run = text
	return nil
}

// tell leaves out what each member of a large cluster, or of a run in which very much happens, does alike,
// but for the members whose views alone are drawn, and then what is too much.
func tell(r *scenario.Result) (events []scenario.Event, left int) {
	events = []scenario.Event{}
	if r.History == nil {
		return events, 0
	}
	for _, e := range r.Events {
		alike := (r.History.Watched != nil || len(r.Events) > maxEvents) &&
			slices.Contains([]string{"detects", "forgets", "reads", "start"}, e.Kind)
		if alike && !slices.Contains(r.History.Watched, e.Node) || len(events) == maxEvents {
			left++
			continue
		}
		events = append(events, e)
	}
	return events, left
}

// add counts a run of the group.
func (g *group) add(r *Run) {
	g.Runs++
	if n := len(g.seeds); n > 0 && g.seeds[n-1].to+1 == r.Seed {
		g.seeds[n-1].to++
	} else {
		g.seeds = append(g.seeds, seedRange{r.Seed, r.Seed})
	}
	m := &r.Measures
	if m.Settled {
		g.resolved = append(g.resolved, m.Resolved.Seconds())
	}
	g.double, g.nobody = append(g.double, m.DoubleActive.Seconds()), append(g.nobody, m.NobodyActive.Seconds())
}

// Write writes the page: groups that failed first, then in the order in which they came. It returns the
// errors of w.
func (p *Page) Write(w io.Writer) error {
	groups := slices.Clone(p.groups)
	slices.SortStableFunc(groups, func(a, b *group) int { return rank(a) - rank(b) })
	unlisted := 0
	for i, g := range groups {
		if i >= maxListed {
			unlisted += g.Runs
			continue
		}
		g.Seeds = seedWords(g.seeds)
		g.Resolved, g.Double, g.Nobody = scenario.SpreadOf(g.resolved, parts), scenario.SpreadOf(g.double, parts),
			scenario.SpreadOf(g.nobody, parts)
	}
	data, err := json.Marshal(struct {
		Runs     int      `json:"runs"`
		Failed   int      `json:"failed"`
		Unlisted int      `json:"unlisted"`
		Groups   []*group `json:"groups"`
	}{p.runs, p.failed, unlisted, groups[:min(len(groups), maxListed)]})
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	_, err = strings.NewReplacer("{{policy}}", policy, "{{style}}", style, "{{runs}}", string(data),
		"{{script}}", script).WriteString(w, page)
	return err
}

func rank(g *group) int {
	if g.passed {
		return 1
	}
	return 0
}

// seedWords are seeds as people write them: 1-40, 43.
func seedWords(all []seedRange) string {
	var list []string
	for i, r := range all {
		switch {
		case i == maxRanges:
			return strings.Join(list, ", ") + " and more"
		case r.from == r.to:
			list = append(list, fmt.Sprint(r.from))
		default:
			list = append(list, fmt.Sprintf("%d-%d", r.from, r.to))
		}
	}
	return strings.Join(list, ", ")
}

// The page, its style, and its script in three parts.
var (
	//go:embed page/page.html
	page string
	//go:embed page/report.css
	style string
	//go:embed page/model.js
	model string
	//go:embed page/draw.js
	draw string
	//go:embed page/page.js
	player string

	script = model + draw + player
	// policy lets the page load nothing, and run nothing but its own script.
	policy = "default-src 'none'; style-src " + hash(style) + "; script-src " + hash(script) +
		"; base-uri 'none'; form-action 'none'"
)

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
