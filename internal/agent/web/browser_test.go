package web

import (
	"context"
	"fmt"
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
	"github.com/serf-sbr/serf-sbr/internal/browsertest"
)

// opened serves a source and opens its page. When the test ends the page must have asked for nothing but what is served here, and nothing must
// have gone wrong on it: no exception, no complaint on the console, nothing that the content security policy had to forbid.
func opened(t *testing.T, o browsertest.Options, f *fake) *browsertest.Page {
	t.Helper()
	_, url := served(t, Options{Source: f})
	p := browsertest.Open(t, url+"/", o)
	p.Await(live)
	t.Cleanup(func() {
		require.Empty(t, p.Problems())
		for _, r := range p.Requests() {
			require.True(t, strings.HasPrefix(r, url+"/") || strings.HasPrefix(r, "data:,"), r)
		}
		p.Do(chromedp.Navigate("about:blank")) // before its server goes: pages of one browser hear each other's complaints
	})
	return p
}

const live = `document.getElementById("feed").dataset.is === "live"`

// visited shows one state of the page after the other in one tab.
func visited(t *testing.T, o browsertest.Options, look func(name string, p *browsertest.Page)) {
	t.Helper()
	var p *browsertest.Page
	all := states()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		_, url := served(t, Options{Source: all[name]()})
		if p == nil {
			p = browsertest.Open(t, url+"/", o)
		} else {
			p.Do(chromedp.Navigate(url + "/"))
		}
		p.Await(live)
		look(name, p)
	}
	require.Empty(t, p.Problems())
	p.Do(chromedp.Navigate("about:blank"))
}

func text(p *browsertest.Page, selector string) string {
	return browsertest.Eval[string](p, fmt.Sprintf("document.querySelector(%q).textContent", selector))
}

func numberOf(p *browsertest.Page, selector string) int {
	return browsertest.Eval[int](p, fmt.Sprintf("document.querySelectorAll(%q).length", selector))
}

func awaitText(p *browsertest.Page, selector, want string) {
	p.Await(fmt.Sprintf("document.querySelector(%q)?.textContent.includes(%q)", selector, want))
}

// A partition comes and is resolved under the eyes of whoever watches; the page is never loaded again.
func TestBrowser_Live(t *testing.T) {
	f := whole(5)
	p := opened(t, browsertest.Options{}, f)
	require.Equal(t, "All 5 members reach each other.", text(p, "#headline"))
	require.Equal(t, "✔ n1 up – sbr", browsertest.Get(p, chromedp.Title()))
	require.Equal(t, 10, numberOf(p, "#graph line.open"))
	p.Do(chromedp.Evaluate[chromedp.Void](`window.mark = true`))
	f.set(func(f *fake) { f.lose(2).deadline(time.Now(), time.Now().Add(20*time.Second)) })
	awaitText(p, "#headline", "2 of 5 members are unreachable: n4 and n5.")
	require.Equal(t, "✘ n1 suspended – sbr", browsertest.Get(p, chromedp.Title()))
	require.Equal(t, 6, numberOf(p, "#graph line.cut"))
	require.Equal(t, 3, numberOf(p, "#graph line.open"), "between the two that are unreachable nothing is known")
	require.Equal(t, 2, numberOf(p, "#graph .node.missed"))
	require.Equal(t, "B", text(p, "#graph .node.missed .inside"))
	require.Equal(t, 2, numberOf(p, "#members tr.missed"))
	awaitText(p, "#journal tr", "suspended")
	f.set(func(f *fake) { f.waits() })
	awaitText(p, "#state", "waiting for the lease")
	awaitText(p, "#facts", "held by n4, token 3")
	f.set(func(f *fake) {
		d := decided(5, 2)
		f.status, f.health = d.status, d.health
	}).happened(noon, downing.OccurredVerdict, "verdict 4 by n1")
	awaitText(p, "#headline", "All 3 members reach each other.")
	awaitText(p, "#verdict", "n1, n2 and n3")
	awaitText(p, "#journal tr.key", "verdict 4 by n1")
	require.Equal(t, 2, numberOf(p, "#graph .node.downed"))
	require.Zero(t, numberOf(p, "#countdown *"))
	require.True(t, browsertest.Eval[bool](p, "window.mark"), "it is the same page")
	require.Equal(t, 1, strings.Count(strings.Join(p.Requests(), " "), "/events"), "and one feed")
}

func TestBrowser_Countdown(t *testing.T) {
	f := whole(5).lose(2)
	p := opened(t, browsertest.Options{}, f)
	p.Do(chromedp.Evaluate[chromedp.Void](`window.told = []; setInterval(() => {
		const left = document.querySelector("#countdown .left"), bar = document.querySelector("progress");
		if (left && left.textContent !== told.at(-1)?.[0]) told.push([left.textContent, bar.value]);
	}, 20)`))
	f.set(func(f *fake) { f.deadline(time.Now().Add(-10*time.Second), time.Now().Add(4*time.Second)) })
	awaitText(p, "#countdown time", "A decision at "+clock(*f.status.Deadline))
	p.Await(`told.at(-1)?.[0] === "due"`)
	told := browsertest.Eval[[][2]any](p, "told.filter(([text]) => text)")
	require.Greater(t, len(told), 2, "%v", told)
	for i := 1; i < len(told); i++ {
		require.Less(t, told[i][0], told[i-1][0], "in 3 s, in 2 s, in 1 s, due")
		require.Greater(t, told[i][1], told[i-1][1], "the bar grows")
	}
	require.Zero(t, browsertest.Eval[int](p, `document.querySelectorAll("[aria-live=polite] .left").length`), "nobody wants to hear every second")
}

// The countdown follows the clock of the agent, whatever that of the browser says.
func TestBrowser_CountdownByTheAgentsClock(t *testing.T) {
	f := whole(5).lose(2).deadline(time.Now(), time.Now().Add(50*time.Second))
	p := opened(t, browsertest.Options{}, f)
	p.Do(chromedp.Evaluate[chromedp.Void](`{const real = Date.now; Date.now = () => real() - 3600e3}`))
	f.set(func(f *fake) { f.status.Lease.Token = 7 })
	awaitText(p, "#facts", "token 7")
	require.Regexp(t, `^in (4\d|50) s$`, text(p, "#countdown .left"))
}

// While the agent is away what is shown is marked as old; when it is back, another process, the page goes on by itself.
func TestBrowser_Restart(t *testing.T) {
	serve := func(address string, f *fake) (*Server, func()) {
		s, err := New(Options{Listen: address, Source: f})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(ctx) }()
		return s, func() { cancel(); require.NoError(t, <-ended) }
	}
	f := whole(5).lose(2).deadline(time.Now(), time.Now().Add(time.Minute))
	s, stop := serve("127.0.0.1:0", f)
	address := s.Addr().String()
	p := browsertest.Open(t, "http://"+address+"/", browsertest.Options{})
	p.Await(live)
	require.Equal(t, 4, numberOf(p, "#journal tr"))
	require.True(t, browsertest.Eval[bool](p, `document.getElementById("stale").hidden`))
	stop()
	awaitText(p, "#feed", "reconnecting")
	awaitText(p, "#stale", "What follows was true 2 s ago.")
	require.True(t, browsertest.Eval[bool](p, `document.documentElement.classList.contains("stale")`))
	require.Equal(t, "unknown whether it still stands", text(p, "#countdown .left"), "nothing is counted down that nobody knows")
	require.Equal(t, "2 of 5 members are unreachable: n4 and n5.", text(p, "#headline"))
	_, stop = serve(address, decided(3, 1).happened(noon, "armed", "after the restart"))
	defer stop()
	p.Await(live)
	awaitText(p, "#headline", "Both members reach each other.")
	awaitText(p, "#journal", "after the restart")
	require.NotContains(t, text(p, "#journal"), "n5 is unreachable", "the history of the other process is gone")
	require.True(t, browsertest.Eval[bool](p, `document.getElementById("stale").hidden`))
}

// When there are too many feeds the page says that it is not live, and comes in when there is room.
func TestBrowser_FeedIsRefused(t *testing.T) {
	s, url := served(t, Options{Source: whole(3)})
	for range maxFeeds {
		require.True(t, s.feed.enter())
	}
	p := browsertest.Open(t, url+"/", browsertest.Options{})
	awaitText(p, "#feed", "reconnecting")
	require.Equal(t, "All 3 members reach each other.", text(p, "#headline"), "what came with the page is there")
	s.feed.leave()
	p.Await(live)
}

// With the token as password a browser gets everything, the feed included.
func TestBrowser_Token(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(path, []byte("s3cret"), 0o600))
	_, url := served(t, Options{Source: whole(3), TokenFile: path})
	p := browsertest.Open(t, strings.Replace(url, "://", "://ops:s3cret@", 1)+"/", browsertest.Options{})
	p.Await(live)
	require.Equal(t, "All 3 members reach each other.", text(p, "#headline"))
	require.NotContains(t, browsertest.Eval[string](p, "document.documentElement.outerHTML"), "s3cret")
}

func TestBrowser_Keyboard(t *testing.T) {
	p := opened(t, browsertest.Options{}, whole(5).lose(2))
	focus := func() string {
		return browsertest.Eval[string](p, `(() => { const e = document.activeElement; return e.id || e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.textContent })()`)
	}
	ring := `(() => { const s = getComputedStyle(document.activeElement); return s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2 })()`
	var walk []string
	for range 20 {
		p.Do(chromedp.KeyEvent(kb.Tab))
		walk = append(walk, focus())
		require.True(t, browsertest.Eval[bool](p, ring), "it can be seen where the keyboard is: %s", walk)
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
	require.True(t, browsertest.Eval[bool](p, `document.querySelector("details").open`))
	p.Do(chromedp.Focus(chromedp.CSS("th:nth-child(2) .sort")), chromedp.KeyEvent(kb.Enter))
	require.Equal(t, "ascending", browsertest.Eval[string](p, `document.querySelector(".members th:nth-child(2)").ariaSort`))
}

func TestBrowser_FindAndSort(t *testing.T) {
	f := whole(12).lose(2)
	p := opened(t, browsertest.Options{}, f)
	shown := func() string {
		return browsertest.Eval[string](p, `[...document.querySelectorAll("#members .name")].map((e) => e.textContent).join(" ")`)
	}
	p.Do(chromedp.Click(chromedp.CSS("th:nth-child(1) .sort")))
	require.Equal(t, "n1 n2 n3 n4 n5 n6 n7 n8 n9 n10 n11 n12", shown(), "numbers are numbers")
	p.Do(chromedp.Click(chromedp.CSS("th:nth-child(1) .sort")))
	require.True(t, strings.HasPrefix(shown(), "n12 n11 n10 n9"))
	p.Do(chromedp.Click(chromedp.CSS("#find")), chromedp.SendKeys(chromedp.CSS("#find"), "UNREACHABLE"))
	require.Equal(t, "n12 n11", shown())
	require.Equal(t, "2 of 12", text(p, "#found"))
	f.set(func(f *fake) { f.status.Members[11].Reachable = true })
	awaitText(p, "#headline", "1 of 12")
	require.Equal(t, "n11", shown(), "what was asked for holds when the state changes")
	require.Equal(t, "find", browsertest.Eval[string](p, "document.activeElement.id"), "and so does the focus")
	p.Do(chromedp.Evaluate[chromedp.Void](`{const e = document.getElementById("kinds"); e.value = "key"; e.dispatchEvent(new Event("change"))}`))
	require.Zero(t, browsertest.Eval[int](p, `[...document.querySelectorAll("#journal tr")].filter((r) => r.offsetHeight).length`))
}

// Whoever does not see the page hears the headline, and has the graph as a table.
func TestBrowser_ScreenReader(t *testing.T) {
	p := opened(t, browsertest.Options{}, whole(5).lose(2))
	require.Equal(t, "2 of 5 members are unreachable: n4 and n5.", text(p, "[aria-live=polite] h2"))
	require.Contains(t, browsertest.Eval[string](p, `document.querySelector("#graph svg").ariaLabel`), "unreachable: n4 and n5")
	require.Contains(t, text(p, "#members tr:last-child"), "n1, n2 and n3", "the table says who does not reach it")
	unnamed := `[...document.querySelectorAll("a, button, input, select, summary, [role=region], section, svg[role=img]")].filter((e) =>
		!(e.ariaLabel || e.textContent.trim() || e.labels?.length || document.getElementById(e.getAttribute("aria-labelledby")))).map((e) => e.outerHTML)`
	require.Empty(t, browsertest.Eval[[]string](p, unnamed))
	require.Empty(t, browsertest.Eval[[]string](p, `[...document.querySelectorAll("[id]")].map((e) => e.id).filter((id, i, all) => all.indexOf(id) !== i)`), "ids are unique")
	require.Equal(t, "en", browsertest.Eval[string](p, "document.documentElement.lang"))
	require.Equal(t, 1, numberOf(p, "h1"))
}

// 500 members are drawn at once, and again whenever something changes.
func TestBrowser_FiveHundredMembers(t *testing.T) {
	f := whole(500)
	p := opened(t, browsertest.Options{}, f)
	require.Equal(t, 500, numberOf(p, "#graph .chip"))
	require.Equal(t, 500, numberOf(p, "#members tr"))
	p.Do(chromedp.Evaluate[chromedp.Void](`window.slowest = 0; new PerformanceObserver((l) => { for (const e of l.getEntries()) slowest = Math.max(slowest, e.duration) }).observe({type: "longtask"})`))
	began := time.Now()
	f.set(func(f *fake) { f.lose(200) })
	awaitText(p, "#headline", "200 of 500 members are unreachable")
	require.Less(t, time.Since(began), 5*time.Second)
	require.Equal(t, 200, numberOf(p, "#graph .chip.missed"))
	require.Equal(t, "200 cannot be reached from here (side B)", text(p, "#graph h4"))
	require.Contains(t, text(p, "#members tr"), "n301", "what matters comes first")
	require.Less(t, browsertest.Eval[float64](p, "slowest"), 2000.0, "ms, beside load")
	_, url := served(t, Options{Source: f})
	_, body, _ := get(t, http.MethodGet, url+"/")
	require.Less(t, len(body), 400_000)
}

// Names that others chose are text, whatever is in them, and move nothing around them.
func TestBrowser_HostileNames(t *testing.T) {
	f := hostile()
	p := opened(t, browsertest.Options{}, f)
	check := func() {
		require.Zero(t, numberOf(p, "img"))
		require.Equal(t, 1, numberOf(p, "script:not([type])"))
		require.Contains(t, text(p, "#members"), markup)
		require.Contains(t, text(p, "#graph"), "<script>alert(1)")
		all := browsertest.Eval[string](p, "document.body.textContent")
		require.NotContains(t, all, "\u202e", "what reorders is written out")
		require.Contains(t, all, `n\u202e4olleh`)
		require.Contains(t, all, "\u2068"+backwards+"\u2069", "what is written from right to left stays by itself")
	}
	check()
	f.set(func(f *fake) { f.status.Lease.Token++ }) // the script draws
	awaitText(p, "#facts", "token 1")
	check()
	require.Contains(t, text(p, "#yaml"), "</pre>"+markup)
	many := whole(100)
	for i := range many.status.Members[1:] {
		many.status.Members[i+1].Name = fmt.Sprint(i, markup, turned)
	}
	q := opened(t, browsertest.Options{}, many.lose(50))
	require.Equal(t, 100, numberOf(q, ".chip"))
	require.Equal(t, 1, numberOf(q, "script:not([type])"))
}

// Should markup slip in all the same, it does nothing, and a script cannot make any out of text.
func TestBrowser_PolicyForbidsTheRest(t *testing.T) {
	var asked atomic.Int64
	_, url := served(t, Options{Source: whole(3), Metrics: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) })})
	p := browsertest.Open(t, url+"/", browsertest.Options{})
	p.Await(live)
	require.Equal(t, "TypeError", browsertest.Eval[string](p, `(() => { try { document.body.innerHTML = "<b>x</b>"; return "done" } catch (e) { return e.name } })()`))
	require.Equal(t, "refused", browsertest.Eval[string](p, `(() => { const s = document.createElement("script"); try { s.text = "window.slipped = true" } catch (e) { return "refused" } document.body.append(s); return String(window.slipped) })()`))
	p.Do(chromedp.Evaluate[chromedp.Void](`{const i = document.createElement("img"); i.onerror = () => { window.refused = true }; i.src = "/metrics"; document.body.append(i)}`))
	p.Await(`window.refused === true`)
	require.Zero(t, asked.Load(), "not even what is served beside it")
	require.NotEmpty(t, p.Problems(), "the browser says so")
}

// However many there are, no member lies upon another one, and all lie within the drawing.
func TestBrowser_RingPlaces(t *testing.T) {
	const crowded = `(() => {
		const nodes = [...document.querySelectorAll("#graph g.node")];
		const at = nodes.map((n) => n.getAttribute("transform").match(/-?[0-9.]+/g).map(Number));
		const size = nodes[0].querySelector(".fill").getBBox().width / 2;
		const box = document.querySelector("#graph svg").viewBox.baseVal;
		return at.filter(([x, y], i) => x < box.x || x > box.x + box.width || y < box.y || y > box.y + box.height ||
			at.some(([u, v], j) => j < i && Math.hypot(x - u, y - v) <= 2 * size)).length;
	})()`
	for _, n := range []int{1, 2, 5, besides, besides + 1, 37, inRing} {
		p := opened(t, browsertest.Options{}, whole(n))
		require.Equal(t, n, numberOf(p, "#graph g.node"))
		require.Zero(t, browsertest.Eval[int](p, crowded), n)
	}
}
