package report_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator/report"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
	"github.com/serf-sbr/serf-sbr/test/browser"
)

var update = flag.Bool("update", false, "take the picture of the documentation anew")

func TestMain(m *testing.M) { os.Exit(browser.Main(m)) }

// split is the scenario of the documentation: three against two.
const split = `
name: three against two
cluster: {nodes: 5, detection: {after: 4s, spread: 1s, heal: 1s}}
steps: [{at: 10s, partition: [[n1, n2, n3], [n4, n5]]}]
run-for: 120s
expect: {survivors: [n1, n2, n3]}`

// unresolved ends before any member has decided.
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
func recorded(t *testing.T, text string, seed uint64) report.Run {
	t.Helper()
	s, err := scenario.Parse("x.yaml", []byte(text))
	require.NoError(t, err)
	r := scenario.Run(s, seed)
	require.NotNil(t, r.History)
	// Each run has a file of its own here, so that each is a group.
	return report.Run{Result: r, File: fmt.Sprint(seed), Sentence: "What it shows.",
		Replay: fmt.Sprintf("sbr simulate x.yaml --seeds %d", seed)}
}

// written is the page of runs.
func written(t *testing.T, runs ...report.Run) string {
	t.Helper()
	page := report.New()
	for _, r := range runs {
		require.NoError(t, page.Add(r, nil))
	}
	var b bytes.Buffer
	require.NoError(t, page.Write(&b))
	return b.String()
}

// opened writes the page of runs to a file and opens it. When the test ends the page must have asked for
// nothing but itself, and nothing must have gone wrong on it.
func opened(t *testing.T, o browser.Options, runs ...report.Run) *browser.Page {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	require.NoError(t, os.WriteFile(path, []byte(written(t, runs...)), 0o600))
	url := "file://" + path
	p := browser.Open(t, url, o)
	t.Cleanup(func() {
		require.Empty(t, p.Problems())
		require.Equal(t, []string{url}, p.Requests(), "nothing but the file itself is asked for")
	})
	return p
}

// moment is which event is shown, by its row, the slider and the words; they must agree.
func moment(t *testing.T, p *browser.Page) int {
	t.Helper()
	got := browser.Eval[[]int](p, `(() => {
		const row = document.querySelectorAll('.events tr[aria-current]');
		const said = /event (\d+) of (\d+)/.exec(document.querySelector('.moment').textContent);
		return [row.length, +row[0].dataset.event, +document.querySelector('.slider').value, said[1] - 1, said[2] - 1, +document.querySelector('.slider').max];
	})()`)
	require.Equal(t, 1, got[0])
	require.Equal(t, got[1], got[2])
	require.Equal(t, got[1], got[3])
	require.Equal(t, got[4], got[5])
	return got[1]
}

func text(p *browser.Page, selector string) string {
	return browser.Eval[string](p, `document.querySelector("`+selector+`").textContent`)
}

// set gives a control a value, as a person does.
func set(p *browser.Page, selector, value, event string) {
	p.Do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf("{const e = document.querySelector(%q); e.value = %q; e.dispatchEvent(new Event(%q, {bubbles: true}))}", selector, value, event)))
}

// cell is what one member sees of another at the moment that is shown.
func cell(p *browser.Page, by, of int) string {
	return browser.Get(p, chromedp.Evaluate[string](
		`document.querySelectorAll(".matrix tbody tr")[`+strconv.Itoa(by-1)+`].cells[`+strconv.Itoa(of)+`].title`))
}

// last is the row of the last event.
func last(p *browser.Page) int {
	return browser.Eval[int](p, `document.querySelectorAll(".events tbody tr").length`) - 1
}

func TestOpens(t *testing.T) {
	p := opened(t, browser.Options{}, recorded(t, split, 1))
	require.Equal(t, "three against two, seed 1 – simulation report", browser.Get(p, chromedp.Title()))
	require.Contains(t, text(p, ".badge"), "passed")
	require.Contains(t, text(p, ".facts"), "n1 n2 n3")
	require.Equal(t, "n1,n2,n3,n4,n5", browser.Eval[string](p,
		`[...document.querySelectorAll(".names .lane")].map(e => e.textContent).join()`))
	require.Equal(t, 5, browser.Eval[int](p, `document.querySelectorAll(".graph .node").length`))
	require.Contains(t, text(p, ".events tr[aria-current]"), "decides", "it opens where something is decided")
}

func TestKeyboard(t *testing.T) {
	p := opened(t, browser.Options{}, recorded(t, split, 1))
	end := last(p)
	for _, step := range []struct {
		key  string
		mod  []chromedp.KeyOption
		want int
	}{
		{kb.Home, nil, 0}, {kb.ArrowLeft, nil, 0}, {kb.ArrowRight, nil, 1}, {kb.ArrowRight, nil, 2}, {kb.ArrowLeft, nil, 1},
		{kb.ArrowRight, []chromedp.KeyOption{chromedp.KeyModifiers(kb.ModifierShift)}, 11},
		{kb.ArrowLeft, []chromedp.KeyOption{chromedp.KeyModifiers(kb.ModifierShift)}, 1},
		{kb.End, nil, end}, {kb.ArrowRight, nil, end},
	} {
		p.Do(chromedp.KeyEvent(step.key, step.mod...))
		require.Equal(t, step.want, moment(t, p), "%q", step.key)
	}
	p.Do(chromedp.Focus(chromedp.CSS(".slider")), chromedp.KeyEvent(kb.Home), chromedp.KeyEvent(kb.ArrowRight))
	require.Equal(t, 1, moment(t, p), "one step, not two, on the slider itself")
	p.Do(chromedp.Focus(chromedp.CSS(`[data-step="1"]`)), chromedp.KeyEvent(" "))
	require.Equal(t, 2, moment(t, p), "the space bar presses a button that has the keyboard")
	require.Equal(t, "false", browser.Eval[string](p, `document.querySelector("[data-step=play]").ariaPressed`))
}

func TestPlay(t *testing.T) {
	p := opened(t, browser.Options{Still: true}, recorded(t, split, 1))
	p.Do(chromedp.KeyEvent(kb.Home), chromedp.KeyEvent(" "))
	require.Equal(t, "true", browser.Eval[string](p, `document.querySelector("[data-step=play]").ariaPressed`))
	p.Await(`document.querySelector(".slider").value >= 2`)
	p.Do(chromedp.KeyEvent(" "))
	require.Equal(t, "false", browser.Eval[string](p, `document.querySelector("[data-step=play]").ariaPressed`))
	p.Do(chromedp.KeyEvent(kb.End), chromedp.KeyEvent(kb.ArrowLeft),
		chromedp.Click(chromedp.CSS("[data-step=play]")))
	p.Await(`document.querySelector("[data-step=play]").ariaPressed === "false"`)
	require.Equal(t, last(p), moment(t, p), "it stops at the end by itself")
}

func TestSliderShowsTheMoment(t *testing.T) {
	p := opened(t, browser.Options{}, recorded(t, split, 3)) // its last event is the release, not yet answered
	slide := func(i int) { set(p, ".slider", strconv.Itoa(i), "input") }
	slide(0)
	require.Equal(t, 0, moment(t, p))
	require.Equal(t, "n1 sees n4: alive", cell(p, 1, 4))
	require.NotContains(t, text(p, ".graph svg"), "A", "there are no sides")
	slide(browser.Eval[int](p, `+document.querySelector(".events [data-kind=partition]").dataset.event`))
	require.Contains(t, browser.Eval[string](p, `document.querySelector(".graph svg").ariaLabel`),
		"side B: n4 up, n5 up")
	require.Equal(t, "n1 sees n4: alive", cell(p, 1, 4), "nobody has noticed yet")
	slide(last(p))
	require.Equal(t, last(p), moment(t, p))
	require.Equal(t, "n4 is not at work", cell(p, 4, 1))
	require.Equal(t, "n1 sees n4: unknown", cell(p, 1, 4), "it was removed")
	require.Contains(t, browser.Eval[string](p, `document.querySelector(".graph svg").ariaLabel`),
		"side A: n1 up, n2 up, n3 up; side B: n4 down, n5 down. The lease is held by n1.")
	now := browser.Eval[string](p, `document.querySelector(".now").getAttribute("x1")`)
	require.Regexp(t, `^9\d\.`, now, "the axis ends a little after the last event")
}

func TestClickOnEventAndMark(t *testing.T) {
	// n4 decides as well: a decision has a mark of its own
	p := opened(t, browser.Options{}, recorded(t, split, 4))
	p.Do(chromedp.Click(chromedp.CSS(`.events tr[data-event="12"] td:nth-child(4)`)))
	require.Equal(t, 12, moment(t, p))
	p.Do(chromedp.Click(chromedp.CSS(`.mark.verdict`)))
	require.Contains(t, text(p, ".events tr[aria-current]"), "writes a verdict")
	require.Contains(t, text(p, ".moment"), "survivors [n1#1 n2#1 n3#1]", "in the resolver's own words")
	require.Equal(t, 0, browser.Eval[int](p, "scrollY"), "the page does not jump")
	p.Do(chromedp.Focus(chromedp.CSS(".lanes .mark.decision")), chromedp.KeyEvent(kb.Enter))
	require.Contains(t, text(p, ".events tr[aria-current]"), "decides")
	require.False(t, browser.Eval[bool](p, `document.getElementById("tip").hidden`),
		"what has the keyboard says what it is")
	require.Contains(t, text(p, "#tip"), "decides")
}

func TestZoomKeepsTheMomentInView(t *testing.T) {
	p := opened(t, browser.Options{}, recorded(t, split, 1))
	for range 6 {
		p.Do(chromedp.Click(chromedp.CSS(`[data-zoom="2"]`)))
	}
	inView := `(() => { const t = document.querySelector(".track").getBoundingClientRect(), n = document.querySelector(".now").getBoundingClientRect();
		return n.left >= t.left && n.right <= t.right })()`
	require.True(t, browser.Eval[bool](p, inView))
	require.Contains(t, text(p, "g.axis"), "34.6s", "the axis has finer times")
	for range 4 {
		p.Do(chromedp.KeyEvent(kb.ArrowRight, chromedp.KeyModifiers(kb.ModifierShift)))
		require.True(t, browser.Eval[bool](p, inView))
	}
	require.False(t, browser.Eval[bool](p, `document.documentElement.scrollWidth > innerWidth`),
		"the axis scrolls, not the page")
}

func TestFilterAndShow(t *testing.T) {
	p := opened(t, browser.Options{}, recorded(t, split, 1), recorded(t, unresolved, 7), recorded(t, split, 2))
	shown := func() string {
		return browser.Eval[string](p, `[...document.querySelectorAll(".runs tbody tr")].filter(r => r.offsetHeight).map(r => r.dataset.run).join()`)
	}
	require.Equal(t, "0,1,2", shown())
	require.Equal(t, "3 of 3 groups, 3 runs", text(p, "#found"))
	require.Contains(t, text(p, "article h2"), "cut short", "the failed one is shown first")
	p.Do(chromedp.SendKeys(chromedp.CSS("#find"), "AGAINST  three"))
	require.Equal(t, "1,2", shown())
	require.Equal(t, "2 of 3 groups, 2 runs", text(p, "#found"))
	set(p, "#find", "", "input")
	set(p, "#which", "failed", "change")
	require.Equal(t, "1 of 3 groups, 1 run", text(p, "#found"))
	require.Equal(t, "0", shown())
	set(p, "#which", "", "change")
	p.Do(chromedp.Click(chromedp.CSS(`[data-show="2"]`)))
	require.Equal(t, "three against two seed 2", text(p, "article h2"))
	require.Equal(t, 1, browser.Eval[int](p, `document.querySelectorAll("article").length`))
	before := moment(t, p)
	p.Do(chromedp.KeyEvent(kb.ArrowRight))
	require.Equal(t, before+1, moment(t, p), "the keys belong to the run that is shown")
	p.Do(chromedp.Click(chromedp.CSS(`[data-show="1"]`)), chromedp.Click(chromedp.CSS(`[data-show="0"]`)),
		chromedp.Click(chromedp.CSS(`[data-show="2"]`)))
	require.Equal(t, "three against two seed 2", text(p, "article h2"))
	require.Equal(t, before+1, moment(t, p), "a run that is shown again is where it was")
	p.Do(chromedp.Evaluate[chromedp.Void](`location.hash = "#r0-e5"`))
	p.Await(`document.querySelector("article h2").textContent.includes("cut short")`)
	require.Equal(t, 5, moment(t, p), "a link leads to a run and a moment")
}

func TestNoScript(t *testing.T) {
	p := opened(t, browser.Options{NoScript: true}, recorded(t, unresolved, 1), recorded(t, split, 1))
	visible := func(selector string) bool {
		return browser.Eval[bool](p, `(() => { const e = document.querySelector("`+selector+
			`"); return e !== null && e.getBoundingClientRect().height > 0 })()`)
	}
	require.True(t, visible("noscript p"))
	require.Contains(t, text(p, "noscript"), "This report is drawn by JavaScript")
	for _, s := range []string{"#theme", "footer"} {
		require.False(t, visible(s), "%s does nothing without JavaScript", s)
	}
}

// Runs of one file that came to the same are one row, and the first of them is drawn; failed ones come first.
func TestGroups(t *testing.T) {
	s, err := scenario.Parse("x.yaml", []byte(split))
	require.NoError(t, err)
	ready, err := scenario.Prepare(s)
	require.NoError(t, err)
	told := scenario.Run(s, 1)
	var runs []report.Run
	for seed := uint64(1); seed <= 1000; seed++ {
		r := ready.Measure(seed, nil)
		r.Decisions = nil // which member decides before the verdict arrives is chance
		switch seed {
		case 1, 2:
			r.Survivors = []string{"n4", "n5"}
		case 501:
			r.Passed, r.Failures = false, []string{"S1 broken at 3s: x"}
		}
		r.History, r.Events = told.History, told.Events
		runs = append(runs, report.Run{Result: r, File: "x.yaml"})
	}
	p := opened(t, browser.Options{}, runs...)
	require.Equal(t, "1,000 runs: ✘ 1 failed, 999 passed", text(p, ".count"))
	require.Equal(t, "3 of 3 groups, 1,000 runs", text(p, "#found"))
	require.Equal(t, []string{"✘ failed three against two 1 501", "✔ passed three against two 2 1-2",
		"✔ passed three against two 997 3-500, 502-1000"},
		browser.Eval[[]string](p, `[...document.querySelectorAll(".runs tbody tr")].map(r => [...r.cells].slice(0, 4).map(c => c.textContent).join(" "))`))
	require.Zero(t, browser.Eval[int](p, `document.querySelectorAll(".spread").length`), "one run is not spread")
	p.Do(chromedp.Click(chromedp.CSS(`[data-show="2"]`)))
	require.Contains(t, text(p, ".group"), "997 runs that came to the same")
	require.Contains(t, text(p, ".group"), "seeds 3-500, 502-1000")
	require.Equal(t, 2, browser.Eval[int](p, `document.querySelectorAll(".spread svg").length`),
		"nobody is never at work")
	require.Equal(t, 24, browser.Eval[int](p,
		`document.querySelector(".spread svg").querySelectorAll("rect").length`))
	require.Positive(t, browser.Eval[int](p, `document.querySelectorAll(".events tbody tr").length`))
}

// The limits: 200 kB for one run of five members and three minutes.
func TestSize(t *testing.T) {
	require.Less(t, len(written(t, recorded(t, strings.Replace(split, "120s", "180s", 1), 1))), 200_000)
}

func TestNarrowScreen(t *testing.T) {
	p := opened(t, browser.Options{Width: 390, Height: 844}, recorded(t, unresolved, 1), recorded(t, split, 1))
	require.Equal(t, 390, browser.Eval[int](p, "document.documentElement.scrollWidth"), "nothing sticks out")
	require.Equal(t, "", overlaps(p), "no label covers another one")
}

func TestLabelsDoNotOverlap(t *testing.T) {
	for _, width := range []int{600, 1280, 2000} {
		p := opened(t, browser.Options{Width: width, Height: 900}, recorded(t, split, 1))
		require.Equal(t, "", overlaps(p), "%d pixels wide", width)
	}
}

// overlaps names pairs of texts in the chart, or in the graph, that cover each other.
func overlaps(p *browser.Page) string {
	return browser.Eval[string](p, `[".chart text", ".graph text"].flatMap((selector) => {
		const boxes = [...document.querySelectorAll(selector)].filter((e) => e.textContent).map((e) => [e.textContent, e.getBoundingClientRect()]).filter(([, b]) => b.width > 0);
		return boxes.flatMap(([ta, a], i) => boxes.slice(i + 1).filter(([, b]) =>
			a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2).map(([tb]) => ta + " / " + tb));
	}).join("; ")`)
}

func TestPrint(t *testing.T) {
	p := opened(t, browser.Options{}, recorded(t, unresolved, 1), recorded(t, split, 1))
	pdf := browser.Get(p, chromedp.PrintToPDF(chromedp.PDFPaper(chromedp.PaperA4)))
	pages := strings.Count(string(pdf), "/Type /Page\n")
	require.Greater(t, len(pdf), 20_000, "not empty")
	require.GreaterOrEqual(t, pages, 2)
	require.LessOrEqual(t, pages, 5)
}

// On paper the ground is white, also when the screen is dark, every event is there, and nothing is there to
// be pressed.
func TestPaper(t *testing.T) {
	p := opened(t, browser.Options{Dark: true, Paper: true}, recorded(t, unresolved, 1), recorded(t, split, 1))
	require.Equal(t, "rgb(255, 255, 255)",
		browser.Eval[string](p, `getComputedStyle(document.body).backgroundColor`))
	require.Equal(t, 0, browser.Eval[int](p,
		`[...document.querySelectorAll("button, input, select")].filter(e => e.offsetHeight).length`))
	require.True(t, browser.Eval[bool](p,
		`[...document.querySelectorAll(".scroll")].every(e => e.scrollHeight <= e.clientHeight + 1)`))
	require.True(t, browser.Eval[bool](p,
		`document.querySelector(".chart").getBoundingClientRect().height > 100`))
}

func TestDarkMode(t *testing.T) {
	background := `getComputedStyle(document.body).backgroundColor`
	p := opened(t, browser.Options{Dark: true}, recorded(t, split, 1))
	require.Equal(t, "rgb(20, 23, 28)", browser.Eval[string](p, background))
	p.Do(chromedp.Click(chromedp.CSS("#theme")))
	require.Equal(t, "rgb(255, 255, 255)", browser.Eval[string](p, background), "light by choice")
	p.Do(chromedp.Click(chromedp.CSS("#theme")), chromedp.Click(chromedp.CSS("#theme")))
	require.Equal(t, "rgb(20, 23, 28)", browser.Eval[string](p, background), "as the system again")
	light := opened(t, browser.Options{}, recorded(t, split, 1))
	require.Equal(t, "rgb(255, 255, 255)", browser.Eval[string](light, background))
}

func TestReducedMotion(t *testing.T) {
	moves := `[...document.querySelectorAll("*")].filter(e => parseFloat(getComputedStyle(e).transitionDuration) > 0 || getComputedStyle(e).animationName !== "none").length`
	require.Zero(t, browser.Eval[int](opened(t, browser.Options{Still: true}, recorded(t, split, 1)), moves))
}

// Many members are a few lanes, and a few rows.
func TestLargeCluster(t *testing.T) {
	var even []string
	for i := 2; i <= 60; i += 2 {
		even = append(even, fmt.Sprintf("n%d", i))
	}
	p := opened(t, browser.Options{}, recorded(t, fmt.Sprintf(`
name: sixty
cluster: {nodes: 60, detection: {after: 4s, spread: 0s, heal: 1s}}
steps: [{at: 10s, partition: [[%s]]}]
run-for: 120s
expect: {survivors: [n1]}`, strings.Join(even, ", ")), 1))
	require.Equal(t, "n1,n2,n3 … n59 (29),n4 … n60 (29)", browser.Eval[string](p,
		`[...document.querySelectorAll(".names .lane")].map(e => e.textContent).join()`))
	p.Do(chromedp.KeyEvent(kb.End))
	require.Equal(t, "n1 sees n4 … n60 (29): unknown", cell(p, 1, 4))
	require.Equal(t, "", overlaps(p))
}

// A link to a moment opens the run there, with its row in view.
func TestLinkToAMoment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.html")
	require.NoError(t, os.WriteFile(path, []byte(written(t, recorded(t, unresolved, 1), recorded(t, split, 1))),
		0o600))
	p := browser.Open(t, "file://"+path+"#r1-e40", browser.Options{})
	require.Equal(t, 40, moment(t, p))
	require.True(t, browser.Eval[bool](p, `(() => {
		const row = document.querySelector(".events tr[aria-current]").getBoundingClientRect(), list = document.querySelector(".events .scroll").getBoundingClientRect();
		return row.top >= list.top + document.querySelector(".events thead").offsetHeight && row.bottom <= list.bottom })()`))
}

// Should a script slip in all the same, the page does not run it, nor does it ask for anything.
func TestPolicyForbidsTheRest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.html")
	var picture bytes.Buffer
	require.NoError(t, png.Encode(&picture, image.NewGray(image.Rect(0, 0, 3, 3))))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "x.png"), picture.Bytes(), 0o600))
	page := strings.Replace(written(t, recorded(t, split, 1)), "</body>",
		`<script>window.slipped = true</script><img src="x.png" alt=""><p id="styled" style="position: fixed">x</p></body>`, 1)
	require.NoError(t, os.WriteFile(path, []byte(page), 0o600))
	p := browser.Open(t, "file://"+path, browser.Options{})
	require.False(t, browser.Eval[bool](p, "window.slipped === true"))
	require.Equal(t, "static", browser.Eval[string](p,
		`getComputedStyle(document.getElementById("styled")).position`))
	require.Zero(t, browser.Eval[int](p, `document.querySelector("img").naturalWidth`),
		"not even what lies beside it")
	require.Len(t, p.Problems(), 3, "the browser says so: %q", p.Problems())
	require.True(t, browser.Eval[bool](p, `document.documentElement.classList.contains("js")`),
		"our own script runs")
}

func TestHostileNames(t *testing.T) {
	run := recorded(t, split, 1)
	hostile := `</script><script>alert(1)</script><img src=x onerror=alert(1)>"'`
	run.Scenario, run.Sentence = hostile, hostile
	run = renamed(t, run, hostile)
	p := opened(t, browser.Options{}, run, recorded(t, split, 2))
	require.Equal(t, hostile+" seed 1", text(p, "article h2"))
	require.Zero(t, browser.Eval[int](p, `document.querySelectorAll("img").length`))
	for range 5 {
		p.Do(chromedp.KeyEvent(kb.ArrowRight, chromedp.KeyModifiers(kb.ModifierShift)))
	}
	require.Contains(t, cell(p, 1, 2), hostile)
	require.Zero(t, browser.Eval[int](p, `document.querySelectorAll("img").length`))
	require.Equal(t, 390, browser.Eval[int](opened(t, browser.Options{Width: 390, Height: 800}, run),
		"document.documentElement.scrollWidth"))
}

// renamed is a run of members whose names end in something.
func renamed(t *testing.T, run report.Run, suffix string) report.Run {
	t.Helper()
	text, err := json.Marshal(run.Result)
	require.NoError(t, err)
	var in bytes.Buffer
	quoted, err := json.Marshal(suffix)
	require.NoError(t, err)
	in.Write(regexp.MustCompile(`"(n[1-5])"`).ReplaceAll(text,
		[]byte(`"${1}`+strings.ReplaceAll(string(quoted[1:len(quoted)-1]), "$", "$$")+`"`)))
	require.NoError(t, json.Unmarshal(in.Bytes(), &run.Result))
	return run
}
