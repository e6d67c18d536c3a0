package status_test

import (
	"os"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/browser"
)

func TestMain(m *testing.M) { os.Exit(browser.Main(m)) }

func TestNarrowScreen(t *testing.T) {
	visited(t, browser.Options{Width: 390, Height: 844}, func(name string, p *browser.Page) {
		require.Equal(t, 390, browser.Eval[int](p, "document.documentElement.scrollWidth"), "%s: nothing sticks out", name)
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
	require.Equal(t, light, browser.Eval[string](opened(t, browser.Options{Dark: true, Paper: true}, whole(3)), background), "paper is white")
}

func TestReducedMotion(t *testing.T) {
	moves := `[...document.querySelectorAll("*")].filter((e) => parseFloat(getComputedStyle(e).transitionDuration) > 0 || getComputedStyle(e).animationName !== "none").length`
	require.Zero(t, browser.Eval[int](opened(t, browser.Options{Still: true}, whole(5).lose(2)), moves))
}

// On paper everything is there, and nothing to be pressed.
func TestPaper(t *testing.T) {
	p := opened(t, browser.Options{Paper: true}, decided(40, 13))
	require.Zero(t, browser.Eval[int](p, `[...document.querySelectorAll("button, input, select")].filter((e) => e.offsetHeight).length`))
	require.True(t, browser.Eval[bool](p, `[...document.querySelectorAll(".scroll")].every((e) => e.scrollHeight <= e.clientHeight + 1)`))
	require.True(t, browser.Eval[bool](p, `document.getElementById("yaml").getBoundingClientRect().height > 50`), "what is folded on a screen as well")
}

// Every text on the page can be read in every state, on a light screen, on a dark one and on paper.
func TestContrast(t *testing.T) {
	for screen, o := range map[string]browser.Options{"light": {}, "dark": {Dark: true}, "paper": {Paper: true, Dark: true}} {
		t.Run(screen, func(t *testing.T) {
			visited(t, o, func(name string, p *browser.Page) { require.Greater(t, p.Contrast(), 30, name) })
		})
	}
}
