package status_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/agent/web"
	"github.com/serf-sbr/serf-sbr/test/browser"
)

// opened serves a source and opens its page. When the test ends the page must have asked for nothing but what
// is served here, and nothing must have gone wrong on it: no exception, no complaint on the console, nothing
// that the content security policy had to forbid.
func opened(t *testing.T, o browser.Options, s *source) *browser.Page {
	t.Helper()
	url, _ := serve(t, web.Options{Source: s})
	p := browser.Open(t, url, o)
	p.Await(live)
	t.Cleanup(func() {
		require.Empty(t, p.Problems())
		for _, r := range p.Requests() {
			require.True(t, strings.HasPrefix(r, url) || strings.HasPrefix(r, "data:,"), r)
		}
		// before its server goes: pages of one browser hear each other's complaints
		p.Do(chromedp.Navigate("about:blank"))
	})
	return p
}

const live = `document.getElementById("feed").dataset.is === "live"`

// visited shows one state of the page after the other in one tab.
func visited(t *testing.T, o browser.Options, look func(name string, p *browser.Page)) {
	t.Helper()
	var p *browser.Page
	all := states()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		url, _ := serve(t, web.Options{Source: all[name]()})
		if p == nil {
			p = browser.Open(t, url, o)
		} else {
			p.Do(chromedp.Navigate(url))
		}
		p.Await(live)
		look(name, p)
	}
	require.Empty(t, p.Problems())
	p.Do(chromedp.Navigate("about:blank"))
}

func text(p *browser.Page, selector string) string {
	return browser.Eval[string](p, fmt.Sprintf("document.querySelector(%q).textContent", selector))
}

func numberOf(p *browser.Page, selector string) int {
	return browser.Eval[int](p, fmt.Sprintf("document.querySelectorAll(%q).length", selector))
}

func awaitText(p *browser.Page, selector, want string) {
	p.Await(fmt.Sprintf("document.querySelector(%q)?.textContent.includes(%q)", selector, want))
}

// An open page shows a partition that comes and is resolved; the page is never loaded again.
func TestLive(t *testing.T) {
	f := whole(5)
	p := opened(t, browser.Options{}, f)
	require.Equal(t, "All 5 members reach each other.", text(p, "#headline"))
	require.Equal(t, "✔ n1 up – sbr", browser.Get(p, chromedp.Title()))
	require.Equal(t, 10, numberOf(p, "#graph line.open"))
	p.Do(chromedp.Evaluate[chromedp.Void](`window.mark = true`))
	f.set(func() { f.lose(2).due(0, 20*time.Second) })
	awaitText(p, "#headline", "2 of 5 members are unreachable: n4 and n5.")
	require.Equal(t, "✘ n1 suspended – sbr", browser.Get(p, chromedp.Title()))
	require.Equal(t, 6, numberOf(p, "#graph line.cut"))
	require.Equal(t, 3, numberOf(p, "#graph line.open"), "between the two that are unreachable nothing is known")
	require.Equal(t, 2, numberOf(p, "#graph .node.missed"))
	require.Equal(t, "B", text(p, "#graph .node.missed .inside"))
	require.Equal(t, 2, numberOf(p, "#members tr.missed"))
	awaitText(p, "#journal tr", "suspended")
	f.set(func() { f.waits() })
	awaitText(p, "#state", "waiting for the lease")
	awaitText(p, "#facts", "held by n4, token 3")
	f.set(func() {
		d := decided(5, 2)
		f.status, f.health = d.status, d.health
	}).happened(downing.OccurredVerdict, "verdict 4 by n1")
	awaitText(p, "#headline", "All 3 members reach each other.")
	awaitText(p, "#verdict", "n1, n2 and n3")
	awaitText(p, "#journal tr.key", "verdict 4 by n1")
	require.Equal(t, 2, numberOf(p, "#graph .node.downed"))
	require.Zero(t, numberOf(p, "#countdown *"))
	require.True(t, browser.Eval[bool](p, "window.mark"), "it is the same page")
	require.Equal(t, 1, strings.Count(strings.Join(p.Requests(), " "), "/events"), "and one feed")
}

func TestCountdown(t *testing.T) {
	f := whole(5).lose(2)
	p := opened(t, browser.Options{}, f)
	p.Do(chromedp.Evaluate[chromedp.Void](`window.told = []; setInterval(() => {
		const left = document.querySelector("#countdown .left"), bar = document.querySelector("progress");
		if (left && left.textContent !== told.at(-1)?.[0]) told.push([left.textContent, bar.value]);
	}, 20)`))
	f.set(func() { f.due(10*time.Second, 4*time.Second) })
	awaitText(p, "#countdown time", "A decision at "+f.status.Deadline.Format("15:04:05"))
	p.Await(`told.at(-1)?.[0] === "due"`)
	told := browser.Eval[[][2]any](p, "told.filter(([text]) => text)")
	require.Greater(t, len(told), 2, "%v", told)
	for i := 1; i < len(told); i++ {
		require.Less(t, told[i][0], told[i-1][0], "in 3 s, in 2 s, in 1 s, due")
		require.Greater(t, told[i][1], told[i-1][1], "the bar grows")
	}
	require.Zero(t, browser.Eval[int](p, `document.querySelectorAll("[aria-live=polite] .left").length`),
		"nobody wants to hear every second")
}

// The countdown follows the clock of the agent, whatever that of the browser says.
func TestCountdownByTheAgentsClock(t *testing.T) {
	f := whole(5).lose(2).due(0, 50*time.Second)
	p := opened(t, browser.Options{}, f)
	p.Do(chromedp.Evaluate[chromedp.Void](`{const real = Date.now; Date.now = () => real() - 3600e3}`))
	f.set(func() { f.status.Lease.Token = 7 })
	awaitText(p, "#facts", "token 7")
	require.Regexp(t, `^in (4\d|50) s$`, text(p, "#countdown .left"))
}

// While the agent is away what is shown is marked as old; when it is back, another process, the page goes on
// by itself.
func TestRestart(t *testing.T) {
	f := whole(5).lose(2).due(0, time.Minute)
	url, stop := serve(t, web.Options{Source: f})
	p := browser.Open(t, url, browser.Options{})
	p.Await(live)
	require.Equal(t, 4, numberOf(p, "#journal tr"))
	require.True(t, browser.Eval[bool](p, `document.getElementById("stale").hidden`))
	stop()
	awaitText(p, "#feed", "reconnecting")
	awaitText(p, "#stale", "What follows was true 2 s ago.")
	require.True(t, browser.Eval[bool](p, `document.documentElement.classList.contains("stale")`))
	require.Equal(t, "unknown whether it still stands", text(p, "#countdown .left"),
		"nothing is counted down that nobody knows")
	require.Equal(t, "2 of 5 members are unreachable: n4 and n5.", text(p, "#headline"))
	address := strings.Trim(strings.TrimPrefix(url, "http://"), "/")
	serve(t, web.Options{Listen: address, Source: decided(3, 1).happened("armed", "after the restart")})
	p.Await(live)
	awaitText(p, "#headline", "Both members reach each other.")
	awaitText(p, "#journal", "after the restart")
	require.NotContains(t, text(p, "#journal"), "n5 is unreachable", "the history of the other process is gone")
	require.True(t, browser.Eval[bool](p, `document.getElementById("stale").hidden`))
}

// When there are too many feeds the page says that it is not live, and comes in when there is room.
func TestFeedIsRefused(t *testing.T) {
	url, _ := serve(t, web.Options{Source: whole(3)})
	one := get(t, url+"events")
	for get(t, url+"events").StatusCode == http.StatusOK {
	}
	p := browser.Open(t, url, browser.Options{})
	awaitText(p, "#feed", "reconnecting")
	require.Equal(t, "All 3 members reach each other.", text(p, "#headline"), "what came with the page is there")
	require.NoError(t, one.Body.Close())
	p.Await(live)
}

// With the token as password a browser gets everything, the feed included.
func TestToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(path, []byte("s3cret"), 0o600))
	url, _ := serve(t, web.Options{Source: whole(3), TokenFile: path})
	p := browser.Open(t, strings.Replace(url, "://", "://ops:s3cret@", 1), browser.Options{})
	p.Await(live)
	require.Equal(t, "All 3 members reach each other.", text(p, "#headline"))
	require.NotContains(t, browser.Eval[string](p, "document.documentElement.outerHTML"), "s3cret")
}

func TestKeyboard(t *testing.T) {
	p := opened(t, browser.Options{}, whole(5).lose(2))
	focus := func() string {
		return browser.Eval[string](p, `(() => { const e = document.activeElement; return e.id || e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.textContent })()`)
	}
	ring := `(() => { const s = getComputedStyle(document.activeElement); return s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2 })()`
	var walk []string
	for range 20 {
		p.Do(chromedp.KeyEvent(kb.Tab))
		walk = append(walk, focus())
		require.True(t, browser.Eval[bool](p, ring), "it can be seen where the keyboard is: %s", walk)
		if strings.HasPrefix(walk[len(walk)-1], "metrics") {
			break
		}
	}
	require.Equal(t, []string{
		"To the state of this member", "theme", "kinds", "journal-h", "find", "members-h", "Member", "Seen from here", "Status", "Not reached by",
		"Address", "Roles", "Incarnation", "Times that follow from it, for a cluster of this size", "sbr.yaml with every default, without secrets", "status", "metrics",
	}, walk)
	p.Do(chromedp.Focus(chromedp.CSS(".skip")), chromedp.KeyEvent(kb.Enter))
	require.Equal(t, "main", focus())
	p.Do(chromedp.Focus(chromedp.CSS("summary")), chromedp.KeyEvent(" "))
	require.True(t, browser.Eval[bool](p, `document.querySelector("details").open`))
	p.Do(chromedp.Focus(chromedp.CSS("th:nth-child(2) .sort")), chromedp.KeyEvent(kb.Enter))
	require.Equal(t, "ascending", browser.Eval[string](p,
		`document.querySelector(".members th:nth-child(2)").ariaSort`))
}

func TestFindAndSort(t *testing.T) {
	f := whole(12).lose(2)
	p := opened(t, browser.Options{}, f)
	shown := func() string {
		return browser.Eval[string](p,
			`[...document.querySelectorAll("#members .name")].map((e) => e.textContent).join(" ")`)
	}
	p.Do(chromedp.Click(chromedp.CSS("th:nth-child(1) .sort")))
	require.Equal(t, "n1 n2 n3 n4 n5 n6 n7 n8 n9 n10 n11 n12", shown(), "numbers are numbers")
	p.Do(chromedp.Click(chromedp.CSS("th:nth-child(1) .sort")))
	require.True(t, strings.HasPrefix(shown(), "n12 n11 n10 n9"))
	p.Do(chromedp.Click(chromedp.CSS("#find")), chromedp.SendKeys(chromedp.CSS("#find"), "UNREACHABLE"))
	require.Equal(t, "n12 n11", shown())
	require.Equal(t, "2 of 12", text(p, "#found"))
	f.set(func() { f.status.Members[11].Reachable = true })
	awaitText(p, "#headline", "1 of 12")
	require.Equal(t, "n11", shown(), "what was asked for holds when the state changes")
	require.Equal(t, "find", browser.Eval[string](p, "document.activeElement.id"), "and so does the focus")
	p.Do(chromedp.Evaluate[chromedp.Void](`{const e = document.getElementById("kinds"); e.value = "key"; e.dispatchEvent(new Event("change"))}`))
	require.Zero(t, browser.Eval[int](p,
		`[...document.querySelectorAll("#journal tr")].filter((r) => r.offsetHeight).length`))
}

// A reader that does not see the page hears the headline, and has the graph as a table.
func TestScreenReader(t *testing.T) {
	p := opened(t, browser.Options{}, whole(5).lose(2))
	require.Equal(t, "2 of 5 members are unreachable: n4 and n5.", text(p, "[aria-live=polite] h2"))
	require.Contains(t, browser.Eval[string](p, `document.querySelector("#graph svg").ariaLabel`),
		"unreachable: n4 and n5")
	require.Contains(t, text(p, "#members tr:last-child"), "n1, n2 and n3",
		"the table says who does not reach it")
	unnamed := `[...document.querySelectorAll("a, button, input, select, summary, [role=region], section, svg[role=img]")].filter((e) =>
		!(e.ariaLabel || e.textContent.trim() || e.labels?.length || document.getElementById(e.getAttribute("aria-labelledby")))).map((e) => e.outerHTML)`
	require.Empty(t, browser.Eval[[]string](p, unnamed))
	require.Empty(t, browser.Eval[[]string](p, `[...document.querySelectorAll("[id]")].map((e) => e.id).filter((id, i, all) => all.indexOf(id) !== i)`), "ids are unique")
	require.Equal(t, "en", browser.Eval[string](p, "document.documentElement.lang"))
	require.Equal(t, 1, numberOf(p, "h1"))
}

// 500 members are drawn at once, and again whenever something changes.
func TestFiveHundredMembers(t *testing.T) {
	f := whole(500)
	p := opened(t, browser.Options{}, f)
	require.Equal(t, 500, numberOf(p, "#graph .chip"))
	require.Equal(t, 500, numberOf(p, "#members tr"))
	p.Do(chromedp.Evaluate[chromedp.Void](`window.slowest = 0; new PerformanceObserver((l) => { for (const e of l.getEntries()) slowest = Math.max(slowest, e.duration) }).observe({type: "longtask"})`))
	began := time.Now()
	f.set(func() { f.lose(200) })
	awaitText(p, "#headline", "200 of 500 members are unreachable")
	require.Less(t, time.Since(began), 5*time.Second)
	require.Equal(t, 200, numberOf(p, "#graph .chip.missed"))
	require.Equal(t, "200 cannot be reached from here (side B)", text(p, "#graph h4"))
	require.Contains(t, text(p, "#members tr"), "n301", "what matters comes first")
	require.Less(t, browser.Eval[float64](p, "slowest"), 2000.0, "ms, beside load")
	url, _ := serve(t, web.Options{Source: f})
	page, err := io.ReadAll(get(t, url).Body)
	require.NoError(t, err)
	require.Less(t, len(page), 400_000)
}

// Names that others chose are text, whatever is in them, and move nothing around them.
func TestHostileNames(t *testing.T) {
	f := hostile()
	p := opened(t, browser.Options{}, f)
	check := func() {
		require.Zero(t, numberOf(p, "img"))
		require.Equal(t, 2, numberOf(p, "script"), "its own")
		require.Contains(t, text(p, "#members"), markup)
		require.Contains(t, text(p, "#graph"), "<script>alert(1)")
		all := browser.Eval[string](p, "document.body.textContent")
		require.NotContains(t, all, "\u202e", "what reorders is written out")
		require.Contains(t, all, `n\u202e4olleh`)
		require.Contains(t, all, "\u2068"+backwards+"\u2069", "what is written from right to left stays by itself")
	}
	check()
	f.set(func() { f.status.Lease.Token++ }) // the script draws
	awaitText(p, "#facts", "token 1")
	check()
	require.Contains(t, text(p, "#yaml"), "</pre>"+markup)
	many := whole(100)
	for i := range many.status.Members[1:] {
		many.status.Members[i+1].Name = fmt.Sprint(i, markup, turned)
	}
	q := opened(t, browser.Options{}, many.lose(50))
	require.Equal(t, 100, numberOf(q, ".chip"))
	require.Equal(t, 2, numberOf(q, "script"))
}

// Should markup slip in all the same, it does nothing, and a script cannot make any out of text.
func TestPolicyForbidsTheRest(t *testing.T) {
	var asked atomic.Int64
	url, _ := serve(t, web.Options{Source: whole(3),
		Metrics: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) })})
	p := browser.Open(t, url, browser.Options{})
	p.Await(live)
	require.Equal(t, "TypeError", browser.Eval[string](p, `(() => { try { document.body.innerHTML = "<b>x</b>"; return "done" } catch (e) { return e.name } })()`))
	require.Equal(t, "refused", browser.Eval[string](p, `(() => { const s = document.createElement("script"); try { s.text = "window.slipped = true" } catch (e) { return "refused" } document.body.append(s); return String(window.slipped) })()`))
	p.Do(chromedp.Evaluate[chromedp.Void](`{const i = document.createElement("img"); i.onerror = () => { window.refused = true }; i.src = "/metrics"; document.body.append(i)}`))
	p.Await(`window.refused === true`)
	require.Zero(t, asked.Load(), "not even what is served beside it")
	require.NotEmpty(t, p.Problems(), "the browser says so")
}

// However many there are, no member lies upon another one, and all lie within the drawing.
func TestRingPlaces(t *testing.T) {
	const crowded = `(() => {
		const nodes = [...document.querySelectorAll("#graph g.node")];
		const at = nodes.map((n) => n.getAttribute("transform").match(/-?[0-9.]+/g).map(Number));
		const size = nodes[0].querySelector(".fill").getBBox().width / 2;
		const box = document.querySelector("#graph svg").viewBox.baseVal;
		return at.filter(([x, y], i) => x < box.x || x > box.x + box.width || y < box.y || y > box.y + box.height ||
			at.some(([u, v], j) => j < i && Math.hypot(x - u, y - v) <= 2 * size)).length;
	})()`
	for _, n := range []int{1, 2, 5, 16, 17, 37, 60} {
		p := opened(t, browser.Options{}, whole(n))
		require.Equal(t, n, numberOf(p, "#graph g.node"))
		require.Zero(t, browser.Eval[int](p, crowded), n)
	}
}
