package web

import (
	_ "embed" // the measure of contrast
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/browsertest"
)

func TestBrowser_NarrowScreen(t *testing.T) {
	visited(t, browsertest.Options{Width: 390, Height: 844}, func(name string, p *browsertest.Page) {
		require.Equal(t, 390, browsertest.Eval[int](p, "document.documentElement.scrollWidth"), "%s: nothing sticks out", name)
	})
}

func TestBrowser_Colours(t *testing.T) {
	background := `getComputedStyle(document.body).backgroundColor`
	const light, dark = "rgb(255, 255, 255)", "rgb(20, 23, 28)"
	require.Equal(t, light, browsertest.Eval[string](opened(t, browsertest.Options{}, whole(3)), background))
	p := opened(t, browsertest.Options{Dark: true}, whole(3))
	for _, want := range []string{dark, light, dark, dark} { // system, light, dark, system
		require.Equal(t, want, browsertest.Eval[string](p, background))
		p.Do(chromedp.Click(chromedp.CSS("#theme")))
	}
	require.Equal(t, light, browsertest.Eval[string](opened(t, browsertest.Options{Dark: true, Paper: true}, whole(3)), background), "paper is white")
}

func TestBrowser_ReducedMotion(t *testing.T) {
	moves := `[...document.querySelectorAll("*")].filter((e) => parseFloat(getComputedStyle(e).transitionDuration) > 0 || getComputedStyle(e).animationName !== "none").length`
	require.Zero(t, browsertest.Eval[int](opened(t, browsertest.Options{Still: true}, whole(5).lose(2)), moves))
}

// On paper everything is there, and nothing to be pressed.
func TestBrowser_Paper(t *testing.T) {
	p := opened(t, browsertest.Options{Paper: true}, decided(40, 13))
	require.Zero(t, browsertest.Eval[int](p, `[...document.querySelectorAll("button, input, select")].filter((e) => e.offsetHeight).length`))
	require.True(t, browsertest.Eval[bool](p, `[...document.querySelectorAll(".scroll")].every((e) => e.scrollHeight <= e.clientHeight + 1)`))
	require.True(t, browsertest.Eval[bool](p, `document.getElementById("yaml").getBoundingClientRect().height > 50`), "what is folded on a screen as well")
}

//go:embed testdata/contrast.js
var contrast string

// Every text on the page has the contrast that WCAG 2 asks for at level AA, in every state, on a light screen, on a dark one and on paper.
func TestBrowser_Contrast(t *testing.T) {
	const least = 4.5
	type text struct {
		Text, Where, Color, Ground string
		Ratio                      float64
	}
	for screen, o := range map[string]browsertest.Options{"light": {}, "dark": {Dark: true}, "paper": {Paper: true, Dark: true}} {
		t.Run(screen, func(t *testing.T) {
			visited(t, o, func(name string, p *browsertest.Page) {
				all := browsertest.Eval[[]text](p, contrast)
				require.Greater(t, len(all), 30)
				for _, x := range all {
					require.GreaterOrEqual(t, x.Ratio, least, "%s: %+v", name, x)
				}
			})
		})
	}
}

// The measure finds what is too pale.
func TestBrowser_ContrastCanFail(t *testing.T) {
	p := opened(t, browsertest.Options{}, whole(3))
	p.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#headline").style.color = "#999"`))
	require.InDelta(t, 2.85, browsertest.Eval[float64](p, `Math.min(...(`+contrast+`).map((x) => x.Ratio))`), 0.05)
}
