package status_test

import (
	"os"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/agent/web"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/test/browser"
)

// states are what the page can look like.
func states() map[string]func() *source {
	soon := func(f *source) *source { return f.due(13*time.Second, 7*time.Second) }
	return map[string]func() *source{
		"whole": func() *source { return whole(5) },
		"starting": func() *source {
			f := whole(2)
			f.status.State, f.health.Ready = sbr.StateArming, web.Check{Reason: "2 of at least 3 members are present"}
			f.status.Members[1].Status = "joining"
			return f
		},
		"suspended":  func() *source { return soon(whole(5).lose(2)) },
		"waiting":    func() *source { return soon(whole(5).lose(2).waits()) },
		"decided":    func() *source { return decided(5, 2) },
		"down":       lost,
		"indirectly": indirectly,
		"odd": func() *source {
			f := whole(7)
			f.status.Disagree, f.status.Untagged = []string{"n3", "n4"}, []string{"n7"}
			f.config.Warnings = []string{"stable-after: 2s is shorter than the longest time between two failure detections (5.5s): a side may decide on a partial view; use at least 7s"}
			return f
		},
		"forty":        func() *source { return soon(whole(40).lose(13)) },
		"hundred":      func() *source { return soon(whole(100).lose(20)) },
		"five-hundred": func() *source { return soon(whole(500).lose(60)) },
		"hostile":      hostile,
	}
}

// indirectly is a cluster in which all are reached from here, but not by all others.
func indirectly() *source {
	f := whole(6)
	f.status.Reports = []downing.ReportStatus{{Observer: "n2", Subject: "n5"}, {Observer: "n5", Subject: "n2"},
		{Observer: "n3", Subject: "n6"}}
	return f
}

// Names that a member may have chosen to harm their readers.
const (
	markup    = `<script>alert(1)</script>`
	turned    = "n\u202e4olleh\u202c\u200b"
	backwards = "שלום-5"
	endless   = "a-very-long-name-that-nobody-should-have-given-to-a-member-of-a-cluster-but-somebody-did-and-now-it-has-to-be-shown-all-the-same-0123456789-0123456789"
)

func hostile() *source {
	f := whole(6)
	for i, name := range []string{`"><img src=x onerror=alert(1)>`, markup, turned, backwards, endless} {
		f.status.Members[i+1].Name, f.status.Members[i+1].Incarnation = name, name+"#k3v9xq2m"
		f.status.Members[i+1].Address = "10.0.0.1" + markup
		f.status.Members[i+1].Roles = []string{markup, backwards}
	}
	f.status.System, f.status.Untagged, f.status.Version = "pay"+markup, []string{markup}, markup
	f.lose(4)
	f.status.Verdict = downing.VerdictStatus{Token: 1, Survivors: []string{markup + "#1"},
		Down: []string{turned + "#1", backwards + "#1"}, DecidedBy: markup, Reason: markup}
	f.status.Lease.Holder = markup + "#k3v9xq2m"
	f.config.YAML = "system: </pre>" + markup
	return f.happened(markup, "told "+markup+turned)
}

func TestMain(m *testing.M) { os.Exit(browser.Main(m)) }

func TestNarrowScreen(t *testing.T) {
	visited(t, browser.Options{Width: 390, Height: 844}, func(name string, p *browser.Page) {
		require.Equal(t, 390, browser.Eval[int](p, "document.documentElement.scrollWidth"),
			"%s: nothing sticks out", name)
	})
}

func TestColours(t *testing.T) {
	background := `getComputedStyle(document.body).backgroundColor`
	const light, dark = "rgb(255, 255, 255)", "rgb(20, 23, 28)"
	require.Equal(t, light, browser.Eval[string](opened(t, browser.Options{}, whole(3)), background))
	p := opened(t, browser.Options{Dark: true}, whole(3))
	for _, want := range []string{dark, light, dark, dark} { // system, light, dark, system
		require.Equal(t, want, browser.Eval[string](p, background))
		p.Do(chromedp.Click(chromedp.CSS("#theme")))
	}
	require.Equal(t, light, browser.Eval[string](opened(t, browser.Options{Dark: true, Paper: true}, whole(3)),
		background), "paper is white")
}

func TestReducedMotion(t *testing.T) {
	moves := `[...document.querySelectorAll("*")].filter((e) => parseFloat(getComputedStyle(e).transitionDuration) > 0 || getComputedStyle(e).animationName !== "none").length`
	require.Zero(t, browser.Eval[int](opened(t, browser.Options{Still: true}, whole(5).lose(2)), moves))
}

// On paper everything is there, and nothing to be pressed.
func TestPaper(t *testing.T) {
	p := opened(t, browser.Options{Paper: true}, decided(40, 13))
	require.Zero(t, browser.Eval[int](p,
		`[...document.querySelectorAll("button, input, select")].filter((e) => e.offsetHeight).length`))
	require.True(t, browser.Eval[bool](p,
		`[...document.querySelectorAll(".scroll")].every((e) => e.scrollHeight <= e.clientHeight + 1)`))
	require.True(t, browser.Eval[bool](p, `document.getElementById("yaml").getBoundingClientRect().height > 50`),
		"what is folded on a screen as well")
}

// Every text on the page can be read in every state, on a light screen, on a dark one and on paper.
func TestContrast(t *testing.T) {
	for screen, o := range map[string]browser.Options{"light": {}, "dark": {Dark: true},
		"paper": {Paper: true, Dark: true}} {
		t.Run(screen, func(t *testing.T) {
			visited(t, o, func(name string, p *browser.Page) { require.Greater(t, p.Contrast(), 30, name) })
		})
	}
}
