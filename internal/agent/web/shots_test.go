package web

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/browsertest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// states are what the page can look like.
func states() map[string]func() *fake {
	soon := func(f *fake) *fake { return f.deadline(time.Now().Add(-13*time.Second), time.Now().Add(7*time.Second)) }
	return map[string]func() *fake{
		"whole": func() *fake { return whole(5) },
		"starting": func() *fake {
			f := whole(2)
			f.status.State, f.health.Ready = sbr.StateArming, Check{Reason: "2 of at least 3 members are present"}
			f.status.Members[1].Status = "joining"
			return f
		},
		"suspended":  func() *fake { return soon(whole(5).lose(2)) },
		"waiting":    func() *fake { return soon(whole(5).lose(2).waits()) },
		"decided":    func() *fake { return decided(5, 2) },
		"down":       lost,
		"indirectly": indirectly,
		"odd": func() *fake {
			f := whole(7)
			f.status.Disagree, f.status.Untagged = []string{"n3", "n4"}, []string{"n7"}
			f.config.Warnings = []string{"stable-after: 2s is shorter than the longest time between two condemnations (5.5s): a side may decide on a partial view; use at least 7s"}
			return f
		},
		"forty":        func() *fake { return soon(whole(40).lose(13)) },
		"hundred":      func() *fake { return soon(whole(100).lose(20)) },
		"five-hundred": func() *fake { return soon(whole(500).lose(60)) },
		"hostile":      hostile,
	}
}

// indirectly is a cluster in which all are reached from here, but not by everybody.
func indirectly() *fake {
	f := whole(6)
	f.status.Reports = []downing.ReportStatus{{Observer: "n2", Subject: "n5"}, {Observer: "n5", Subject: "n2"}, {Observer: "n3", Subject: "n6"}}
	return f
}

// Names that a member may have chosen to harm whoever looks at them.
const (
	markup    = `<script>alert(1)</script>`
	turned    = "n\u202e4olleh\u202c\u200b"
	backwards = "שלום-5"
	endless   = "a-very-long-name-that-nobody-should-have-given-to-a-member-of-a-cluster-but-somebody-did-and-now-it-has-to-be-shown-all-the-same-0123456789-0123456789"
)

func hostile() *fake {
	f := whole(6)
	for i, name := range []string{`"><img src=x onerror=alert(1)>`, markup, turned, backwards, endless} {
		f.status.Members[i+1].Name, f.status.Members[i+1].Incarnation = name, name+"#k3v9xq2m"
		f.status.Members[i+1].Address = "10.0.0.1" + markup
		f.status.Members[i+1].Roles = []string{markup, backwards}
	}
	f.status.System, f.status.Untagged, f.status.Version = "pay"+markup, []string{markup}, markup
	f.lose(4)
	f.status.Verdict = downing.VerdictStatus{Token: 1, Survivors: []string{markup + "#1"}, Down: []string{turned + "#1", backwards + "#1"}, DecidedBy: markup, Reason: markup}
	f.status.Lease.Holder = markup + "#k3v9xq2m"
	f.config.YAML = "system: </pre>" + markup
	return f.happened(noon, markup, "told "+markup+turned)
}

// Every state, on every kind of screen, for people to look at: -shots names the folder.
func TestBrowser_Shots(t *testing.T) {
	if *shots == "" {
		t.Skip("pictures are taken with -shots FOLDER")
	}
	require.NoError(t, os.MkdirAll(*shots, 0o755))
	for name, state := range states() {
		for kind, o := range map[string]browsertest.Options{
			"light": {Width: 1280, Height: 1000}, "dark": {Dark: true, Width: 1280, Height: 1000}, "narrow": {Width: 390, Height: 844}, "paper": {Paper: true, Width: 800, Height: 1000},
		} {
			_, url := served(t, Options{Source: state()})
			p := browsertest.Open(t, url, o)
			if !o.Paper {
				p.Await(`document.getElementById("feed").dataset.is === "live"`)
			}
			picture := browsertest.Get(p, chromedp.FullScreenshot(100))
			require.NoError(t, os.WriteFile(filepath.Join(*shots, fmt.Sprintf("%s-%s.png", name, kind)), picture, 0o600))
		}
	}
}

// What is shown while the agent is away is for people to look at, too.
func TestBrowser_ShotOfStale(t *testing.T) {
	if *shots == "" {
		t.Skip("pictures are taken with -shots FOLDER")
	}
	for name, o := range map[string]browsertest.Options{"light": {}, "dark": {Dark: true}, "narrow": {Width: 390, Height: 844}} {
		s, url := served(t, Options{Source: whole(5).lose(2).deadline(time.Now(), time.Now().Add(time.Minute))})
		p := browsertest.Open(t, url, o)
		p.Await(live)
		require.NoError(t, s.Shutdown(t.Context()))
		awaitText(p, "#stale", "true 3 s ago")
		require.NoError(t, os.WriteFile(filepath.Join(*shots, "stale-"+name+".png"), browsertest.Get(p, chromedp.FullScreenshot(100)), 0o600))
	}
}

// The pictures of the documentation: -update takes them anew.
func TestBrowser_Picture(t *testing.T) {
	for name, dark := range map[string]bool{"status-page.png": false, "status-page-dark.png": true} {
		picture := filepath.Join("..", "..", "..", "docs", "img", name)
		if *update {
			take(t, picture, dark)
		}
		info, err := os.Stat(picture)
		require.NoError(t, err, "take it with -update")
		require.Greater(t, info.Size(), int64(20_000))
		require.LessOrEqual(t, info.Size(), int64(300_000))
	}
}

func take(t *testing.T, picture string, dark bool) {
	t.Helper()
	then := noon
	defer func() { noon = then }()
	noon = time.Now()
	f := whole(7).lose(3).deadline(noon, noon.Add(20*time.Second))
	f.status.Verdict = downing.VerdictStatus{
		Token: 3, DecidedBy: uid("n2"), Reason: "6 of 7 counted members are reachable, a majority",
		Survivors: []string{uid("n1"), uid("n2"), uid("n3"), uid("n4"), uid("n5"), uid("n6")}, Down: []string{"n7#p2w8c4zt"},
	}
	f.status.Lease.Token = 3
	p := opened(t, browsertest.Options{Width: 1200, Height: 1130, Dark: dark}, f)
	require.NoError(t, os.WriteFile(picture, browsertest.Get(p, chromedp.CaptureScreenshot()), 0o644))
}
