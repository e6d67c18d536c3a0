package report

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/serf-sbr/serf-sbr/simulator/internal/world"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

var update = flag.Bool("update", false, "write the golden files anew")

// split is the scenario of the documentation: three against two.
const split = `
name: three against two
cluster: {nodes: 5, detection: {after: 4s, spread: 1s, heal: 1s}}
steps: [{at: 10s, partition: [[n1, n2, n3], [n4, n5]]}]
run-for: 120s
expect: {survivors: [n1, n2, n3]}`

// unresolved ends before anybody has decided.
const unresolved = `
name: cut short
cluster: {nodes: 4, detection: {after: 4s, spread: 1s, heal: 1s}}
steps:
  - {at: 10s, partition: [[n1, n2], [n3, n4]]}
  - {at: 11s, lease-store: down, nodes: [n4], for: 5s}
  - {at: 12s, pause: n3, for: 2s}
run-for: 20s
expect: {survivors: [n1, n2], lease-holder: n1}`

// recorded plays a scenario and records it.
func recorded(t testing.TB, text string, seed uint64) Run {
	t.Helper()
	s, err := scenario.Parse("x.yaml", []byte(text))
	require.NoError(t, err)
	r, h := scenario.Record(s, seed)
	require.NotNil(t, h)
	return Run{Result: r, Sentence: "What it shows.", Replay: fmt.Sprintf("sbr simulate x.yaml --seeds %d", seed), History: h}
}

// written is the page of runs.
func written(t testing.TB, runs ...Run) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Write(&b, runs))
	return b.String()
}

// told is a run that nobody played: what is drawn of it depends on nothing else. Of three members the third is cut off, downed
// after a verdict of the first, and told so.
func told() Run {
	at := func(ms int, w world.What) world.Change {
		return world.Change{At: time.Duration(ms) * time.Millisecond, What: w}
	}
	h := &world.History{
		Nodes: []string{"n1", "n2", "n3"}, Watched: []bool{true, true, true}, End: time.Minute,
		Changes: []world.Change{
			at(0, world.Rewired{Groups: []int{0, 0, 0}}),
			at(0, world.Lived{Node: 0, Life: world.Arming}), at(0, world.Led{Node: 0, Leader: 0}),
			at(0, world.Lived{Node: 1, Life: world.Arming}), at(0, world.Lived{Node: 2, Life: world.Arming}),
			at(0, world.Said{Node: -1, Kind: "start", Text: "3 nodes run and know each other"}),
			at(5000, world.Lived{Node: 0, Life: world.Up}), at(5000, world.Lived{Node: 1, Life: world.Up}), at(5000, world.Lived{Node: 2, Life: world.Up}),
			at(10000, world.Said{Node: -1, Kind: "partition", Text: "[n1 n2][n3]"}), at(10000, world.Rewired{Groups: []int{1, 1, 2}}),
			at(11000, world.Said{Node: -1, Kind: "store", Text: "a fault"}), at(11000, world.Hurt{Node: 2, Fault: world.StoreFault{Access: world.Silent}}),
			at(14000, world.Viewed{Observer: 0, Subject: 2, Sight: world.Failed}), at(14000, world.Lived{Node: 0, Life: world.Suspended}),
			at(30000, world.Said{Node: 0, Kind: "decision", Text: "down-unreachable: 2 of 3 are reachable, a majority"}),
			at(30000, world.Lived{Node: 0, Life: world.Waiting}),
			at(30010, world.Held{Node: 0}), at(30010, world.Ruled{By: 0, Token: 1}),
			at(30010, world.Said{Node: 0, Kind: "committed", Text: "token 1, survivors [n1 n2], down [n3]"}), at(30010, world.Lived{Node: 0, Life: world.Up}),
			at(32000, world.Acted{Node: 2}), at(32000, world.Said{Node: 2, Kind: "down", Text: "<verdict 1> does not list this member"}),
			at(32000, world.Lived{Node: 2, Life: world.Downed}),
		},
	}
	r := scenario.Result{
		Scenario: "two against one", Seed: 7, Passed: true, Survivors: []string{"n1", "n2"}, Down: []string{"n3"}, LeaseHolder: "n1",
		ResolvedAfter: "22s", TraceHash: "0123456789abcdef",
	}
	return Run{Result: r, Sentence: "Two & one.", Replay: "sbr simulate x.yaml --seeds 7", History: h}
}

// The static part of a run, to the letter: what is there without JavaScript.
func TestWrite_Golden(t *testing.T) {
	page := written(t, told())
	main := strings.Split(page[strings.Index(page, "<main"):strings.Index(page, "</main>")], "\n")
	golden := filepath.Join("testdata", "told.golden.html")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(strings.Join(main, "\n")), 0o644))
	}
	data, err := os.ReadFile(golden)
	require.NoError(t, err)
	want := strings.Split(string(data), "\n")
	for i := range min(len(want), len(main)) {
		require.Equal(t, want[i], main[i], "line %d; run the test with -update if the change is meant", i+1)
	}
	require.Len(t, main, len(want))
}

func TestWrite_SameRunsSameBytes(t *testing.T) {
	require.Equal(t, written(t, recorded(t, split, 1), recorded(t, split, 2)), written(t, recorded(t, split, 1), recorded(t, split, 2)))
}

// check reads a page as HTML, and holds it to what a valid page must be. It returns all text outside of scripts.
func check(t *testing.T, page string) string {
	t.Helper()
	balanced(t, page)
	root, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	ids := make(map[string]int)
	var refs, text []string
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		for _, a := range n.Attr {
			switch a.Key {
			case "id":
				ids[a.Val]++
			case "href":
				require.True(t, strings.HasPrefix(a.Val, "#"), "%s: no link leaves the page", a.Val)
				refs = append(refs, a.Val[1:])
			case "aria-labelledby":
				refs = append(refs, a.Val)
			case "for":
				refs = append(refs, strings.Fields(a.Val)...)
			case "src", "srcset", "action", "style":
				require.Fail(t, "forbidden", "%s=%s", a.Key, a.Val)
			}
			require.False(t, strings.HasPrefix(a.Key, "on"), "no handler in an attribute: %s", a.Key)
		}
		if n.Type == html.TextNode && n.Parent.Data != "script" && n.Parent.Data != "style" {
			text = append(text, n.Data)
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(root)
	for id, n := range ids {
		require.Equal(t, 1, n, "the id %s is there once", id)
	}
	for _, ref := range refs {
		require.Contains(t, ids, ref)
	}
	return strings.Join(text, " ")
}

// balanced holds every start tag to its end tag: a parser of HTML would mend what is missing.
func balanced(t *testing.T, page string) {
	t.Helper()
	void := map[string]bool{"meta": true, "input": true, "link": true, "br": true}
	var open []string
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		switch z.Next() {
		case html.ErrorToken:
			require.Empty(t, open)
			return
		case html.StartTagToken:
			if name, _ := z.TagName(); !void[string(name)] {
				open = append(open, string(name))
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			require.NotEmpty(t, open)
			require.Equal(t, open[len(open)-1], string(name), "inside %v", open)
			open = open[:len(open)-1]
		}
	}
}

func TestWrite_ValidHTML(t *testing.T) {
	check(t, written(t, recorded(t, split, 1)))
	text := check(t, written(t, recorded(t, split, 1), recorded(t, unresolved, 1), recorded(t, split, 2)))
	require.Contains(t, text, "3 runs")
	require.Contains(t, text, "1 failed")
	check(t, written(t))
}

// Names come from files that anybody may have written.
func TestWrite_HostileNamesAreText(t *testing.T) {
	for _, name := range []string{
		`</script><script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onload='alert(1)`, `</template></title><svg onload=alert(1)>`,
		`<!--`, `]]>`, `javascript:alert(1)`, "\u2028\u2029", `{{.}}`, `</style>`,
	} {
		run := recorded(t, split, 1)
		run.Scenario, run.Sentence, run.Replay = name, name, name
		run.Passed, run.Failures, run.LeaseHolder = false, []string{name}, name
		run.Survivors, run.Down = []string{name}, []string{name}
		for i := range run.History.Nodes {
			run.History.Nodes[i] = fmt.Sprint(name, i)
		}
		for i, c := range run.History.Changes {
			if s, ok := c.What.(world.Said); ok {
				s.Text = name
				run.History.Changes[i].What = s
			}
		}
		other := run
		page := written(t, run, other)
		text := check(t, page)
		require.GreaterOrEqual(t, strings.Count(text, name), 8, name)
		require.Equal(t, 3, strings.Count(page, "<script"), "the script and one set of data for each run")
		require.Equal(t, 3, strings.Count(page, "</script>"))
	}
}

// Failed runs come first, in their order.
func TestWrite_FailedFirst(t *testing.T) {
	page := written(t, recorded(t, split, 1), recorded(t, unresolved, 7), recorded(t, split, 2), recorded(t, unresolved, 3))
	rows := regexp.MustCompile(`<tr data-run="(\d)" class="(\w+)">.*?class="num">(\d)<`).FindAllStringSubmatch(page, -1)
	var order []string
	for _, r := range rows {
		order = append(order, strings.Join(r[1:], " "))
	}
	require.Equal(t, []string{"0 failed 7", "1 failed 3", "2 passed 1", "3 passed 2"}, order)
}

// What the lanes say at their end is what the result says.
func TestWrite_LanesAgreeWithTheResult(t *testing.T) {
	for _, text := range []string{split, unresolved} {
		for seed := uint64(1); seed <= 10; seed++ {
			run := recorded(t, text, seed)
			s := storyOf(run.History)
			var survivors, down []string
			for _, l := range s.Lanes {
				switch last := l.Bars[len(l.Bars)-1]; last.Class {
				case "life-down":
					down = append(down, l.Label)
				case "life-left", "life-crashed", "life-starting":
				default:
					survivors = append(survivors, l.Label)
				}
			}
			require.ElementsMatch(t, run.Survivors, survivors)
			require.ElementsMatch(t, run.Down, down)
		}
	}
}

// The times on the page are those that the world measured on its own.
func TestActivity_AgreesWithTheWorld(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "scenarios", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	double, nobody := 0, 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		s, err := scenario.Parse(file, data)
		require.NoError(t, err)
		if len(s.Cluster.Nodes.List) > 100 || s.Cluster.Nodes.Count > 100 {
			continue
		}
		for seed := uint64(1); seed <= 3; seed++ {
			m := scenario.Measure(s, seed)
			_, h := scenario.Record(s, seed)
			a := activityOf(h)
			if newcomers(s) {
				// Who came late may have met only some of the other side; the page looks at every pair, the world at one member of each side.
				require.GreaterOrEqual(t, total(a.double), m.DoubleActive, "%s, seed %d: two sides", file, seed)
			} else {
				require.Equal(t, m.DoubleActive, total(a.double), "%s, seed %d: two sides", file, seed)
			}
			require.Equal(t, m.NobodyActive, total(a.nobody), "%s, seed %d: nobody", file, seed)
			if m.DoubleActive > 0 {
				double++
			}
			if m.NobodyActive > 0 {
				nobody++
			}
		}
	}
	require.Positive(t, double, "some runs have two sides")
	require.Positive(t, nobody, "in some nobody is left")
}

// What lasts no time is not there.
func TestActivity_MomentsDoNotCount(t *testing.T) {
	at := func(s int, n int, l world.Life) world.Change {
		return world.Change{At: time.Duration(s) * time.Second, What: world.Lived{Node: n, Life: l}}
	}
	h := &world.History{Nodes: []string{"n1", "n2"}, End: time.Minute, Changes: []world.Change{
		at(0, 0, world.Up), at(0, 1, world.Absent), at(10, 0, world.Crashed), at(15, 1, world.Up), at(15, 1, world.Crashed), at(20, 1, world.Up),
		at(30, 1, world.Crashed), at(30, 0, world.Up),
	}}
	require.Equal(t, activity{nobody: []span{{10 * time.Second, 20 * time.Second}}}, activityOf(h))
}

func newcomers(s *scenario.Scenario) bool {
	return slices.ContainsFunc(s.Steps, func(st scenario.Step) bool { return st.Restart != nil || st.Join != nil })
}

func TestSides(t *testing.T) {
	for _, tc := range []struct {
		name   string
		groups []int
		cut    [][2]int
		want   []int
	}{
		{"whole", nil, nil, []int{0, 0, 0, 0}},
		{"two groups", []int{1, 1, 2, 1}, nil, []int{0, 0, 2, 0}},
		{"a link that others bridge", nil, [][2]int{{0, 1}, {1, 0}}, []int{0, 0, 0, 0}},
		{"one way is no way", nil, [][2]int{{0, 1}, {0, 2}, {0, 3}}, []int{0, 1, 1, 1}},
		{"the other way neither", nil, [][2]int{{1, 0}, {2, 0}, {3, 0}}, []int{0, 1, 1, 1}},
		{"a ring without two links", nil, [][2]int{{0, 1}, {0, 3}, {2, 1}, {2, 3}}, []int{0, 1, 0, 1}},
		{"over a third", []int{0, 0, 0, 1}, [][2]int{{0, 1}}, []int{0, 0, 0, 3}},
		{"a node that came later is in the first group", []int{0, 1}, nil, []int{0, 1, 0, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want, sides(world.Rewired{Groups: tc.groups, Cut: tc.cut}, 4))
		})
	}
}

func TestKeeper(t *testing.T) {
	keep := func(k *Keeper, name string, passed bool) bool {
		return k.Keep(&scenario.Result{Scenario: name, Passed: passed})
	}
	few := NewKeeper(maxTold)
	for range maxTold {
		require.True(t, keep(few, "a", true), "all of a few")
	}
	many := NewKeeper(100_000)
	require.True(t, keep(many, "a", true))
	require.False(t, keep(many, "a", true), "the first of each scenario")
	require.True(t, keep(many, "b", true))
	passed, failed := 2, 0
	for i := range 5000 {
		if keep(many, fmt.Sprint(i), true) {
			passed++
		}
		if keep(many, "a", false) {
			failed++
		}
	}
	require.Equal(t, maxToldPassed, passed)
	require.Equal(t, maxToldFailed, failed)
}

// A run that is not told is listed with the command that plays it again, and the page says so.
func TestWrite_UntoldRuns(t *testing.T) {
	untold := recorded(t, split, 2)
	untold.History = nil
	text := check(t, written(t, recorded(t, split, 1), untold))
	require.Contains(t, text, "1 of 2 runs are told in full")
	require.Contains(t, text, "sbr simulate x.yaml --seeds 2")
	text = check(t, written(t, untold))
	require.Contains(t, text, "What happened in this run was not recorded.")
}

// Whatever is missing is said.
func TestWrite_SaysWhatIsMissing(t *testing.T) {
	run := told()
	require.NotContains(t, check(t, written(t, run)), "missing")
	run.History.Truncated = true
	require.Contains(t, check(t, written(t, run)), "what came later is missing")
	for i := range maxEvents {
		run.History.Changes = append(run.History.Changes,
			world.Change{At: 40*time.Second + time.Duration(i), What: world.Said{Node: 0, Kind: "reads", Text: "attempt"}})
	}
	require.Contains(t, check(t, written(t, run)), "6 later events are not told")
	run.History = crowd(500)
	for i := range 300 {
		run.History.Changes = append(run.History.Changes,
			world.Change{At: 30 * time.Second, What: world.Hurt{Node: i, Fault: world.StoreFault{Slow: time.Duration(i + 1)}}})
	}
	require.Regexp(t, `\d+ members with rarer histories are not drawn`, check(t, written(t, run)))
}

func TestClock(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1500: "2µs", 9284123: "9ms", 13204478065: "13.204s", 73*time.Second + 1: "1m13s",
	} {
		require.Equal(t, want, clock(d))
	}
	require.Equal(t, "0:00.000", stamp(0))
	require.Equal(t, "1:13.204", stamp(73204*time.Millisecond))
	require.Equal(t, "2:00.000", stamp(2*time.Minute-time.Microsecond))
}
