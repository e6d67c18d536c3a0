package report

import (
	_ "embed" // the measure of contrast
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/browsertest"
)

//go:embed testdata/contrast.js
var contrast string

// Every text on the page has the contrast that WCAG 2 asks for at level AA, on a light screen, on a dark one and on paper.
func TestBrowser_Contrast(t *testing.T) {
	const least, texts = 4.5, 150
	type text struct {
		Text, Where, Color, Ground string
		Ratio                      float64
	}
	for name, o := range map[string]browsertest.Options{"light": {}, "dark": {Dark: true}, "paper": {Paper: true, Dark: true}} {
		t.Run(name, func(t *testing.T) {
			p := opened(t, o, recorded(t, unresolved, 1), recorded(t, split, 1))
			checked := 0
			look := func() {
				all := browsertest.Eval[[]text](p, contrast)
				checked += len(all)
				for _, x := range all {
					require.GreaterOrEqual(t, x.Ratio, least, "%+v", x)
				}
			}
			look()
			if !o.Paper {
				p.Do(chromedp.Click(chromedp.CSS(`[data-show="1"]`)), chromedp.Click(chromedp.CSS(".mark.verdict")))
				look()
			}
			require.Greater(t, checked, texts)
		})
	}
}

// The measure finds what is too pale.
func TestBrowser_ContrastCanFail(t *testing.T) {
	p := opened(t, browsertest.Options{}, recorded(t, split, 1))
	p.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".facts dd").style.color = "#999"`))
	worst := browsertest.Eval[float64](p, `Math.min(...(`+contrast+`).map((x) => x.Ratio))`)
	require.InDelta(t, 2.85, worst, 0.05)
}

// The picture of the documentation: -update takes it anew.
func TestBrowser_Picture(t *testing.T) {
	picture := filepath.Join("..", "..", "docs", "img", "report.png")
	if *update {
		run := recorded(t, split, 1)
		run.Sentence, run.Replay = "Three against two: the larger side wins, and the smaller one downs itself.", "sbr simulate split.yaml --seeds 1"
		p := opened(t, browsertest.Options{Width: 1200, Height: 1300}, run)
		require.NoError(t, os.MkdirAll(filepath.Dir(picture), 0o755))
		require.NoError(t, os.WriteFile(picture, browsertest.Get(p, chromedp.CaptureScreenshot()), 0o644))
	}
	info, err := os.Stat(picture)
	require.NoError(t, err, "take it with -update")
	require.Greater(t, info.Size(), int64(20_000))
	require.LessOrEqual(t, info.Size(), int64(300_000))
}
