package report_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/browser"
)

// Every text on the page can be read, on a light screen, on a dark one and on paper.
func TestContrast(t *testing.T) {
	const texts = 150
	for name, o := range map[string]browser.Options{"light": {}, "dark": {Dark: true},
		"paper": {Paper: true, Dark: true}} {
		t.Run(name, func(t *testing.T) {
			p := opened(t, o, recorded(t, unresolved, 1), recorded(t, split, 1))
			checked := p.Contrast()
			if !o.Paper {
				p.Do(chromedp.Click(chromedp.CSS(`[data-show="1"]`)), chromedp.Click(chromedp.CSS(".mark.verdict")))
				checked += p.Contrast()
			}
			require.Greater(t, checked, texts)
		})
	}
}

// The picture of the documentation: -update takes it anew.
func TestPicture(t *testing.T) {
	picture := filepath.Join("..", "..", "..", "docs", "img", "report.png")
	if *update {
		run := recorded(t, split, 1)
		run.Sentence, run.Replay = "Three against two: the larger side wins, and the smaller one downs itself.",
			"sbr simulate split.yaml --seeds 1"
		p := opened(t, browser.Options{Width: 1200, Height: 1300}, run)
		require.NoError(t, os.MkdirAll(filepath.Dir(picture), 0o755))
		require.NoError(t, os.WriteFile(picture, browser.Get(p, chromedp.CaptureScreenshot()), 0o644))
	}
	info, err := os.Stat(picture)
	require.NoError(t, err, "take it with -update")
	require.Greater(t, info.Size(), int64(20_000))
	require.LessOrEqual(t, info.Size(), int64(300_000))
}
