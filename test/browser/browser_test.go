package browser

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// fake puts an empty program of that name into a folder of its own.
func fake(t *testing.T, name string) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	path = filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755))
	return dir, path
}

func TestFind(t *testing.T) {
	dir, chrome := fake(t, "google-chrome")
	_, own := fake(t, "own")
	for _, tc := range []struct{ name, path, env, want, problem string }{
		{"none: says how to get one", t.TempDir(), "", "", "run make browser"},
		{"by another name", dir, "", chrome, ""},
		{"the variable wins", dir, own, own, ""},
		{"the variable is wrong", dir, "/nowhere/chromium", "", "SBR_BROWSER=/nowhere/chromium"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("PATH", tc.path)
			t.Setenv(Env, tc.env)
			got, err := Find()
			require.Equal(t, tc.want, got)
			if tc.problem == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.problem)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func write(t *testing.T, html string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.html")
	require.NoError(t, os.WriteFile(path,
		[]byte("<!DOCTYPE html><html lang=en><meta charset=utf-8><link rel=icon href=data:,>"+html), 0o600))
	return "file://" + path
}

// A page that does what a page must not do is found out.
func TestPage_RecordsProblemsAndRequests(t *testing.T) {
	url := write(t, `<title>t</title><img src="https://example.invalid/x.png" alt=""><script>console.error("oh"); throw new Error("no")</script>`)
	p := Open(t, url, Options{})
	require.Equal(t, "t", Eval[string](p, "document.title"))
	require.Contains(t, p.Requests(), url)
	require.Contains(t, p.Requests(), "https://example.invalid/x.png")
	problems := strings.Join(p.Problems(), "\n")
	require.Contains(t, problems, `"oh"`)
	require.Contains(t, problems, "no")
}

func TestPage_HasNoNetwork(t *testing.T) {
	asked := make(chan struct{}, 1)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- struct{}{} }))
	defer s.Close()
	p := Open(t, write(t, `<p>quiet`), Options{})
	url := strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	require.Equal(t, "failed", Eval[string](p, `document.title = "", "failed"`))
	p.Await(`window.asked ? window.done : (window.asked = true, fetch("` + url +
		`").catch(() => {}).finally(() => { window.done = true }), false)`)
	require.Empty(t, asked)
}

func TestPage_Options(t *testing.T) {
	url := write(t, `<p id=p>no</p><script>p.textContent = "yes"</script>`)
	script := func(p *Page) string { return Eval[string](p, `document.getElementById("p").textContent`) }
	matches := func(p *Page, q string) bool { return Eval[bool](p, "matchMedia('"+q+"').matches") }
	light := Open(t, url, Options{})
	require.Equal(t, "yes", script(light))
	require.False(t, matches(light, "(prefers-color-scheme: dark)"))
	require.Equal(t, 1280, Eval[int](light, "innerWidth"))
	require.Empty(t, light.Problems())
	require.Equal(t, []string{url}, light.Requests())
	other := Open(t, url, Options{Dark: true, Still: true, Paper: true, NoScript: true, Width: 390, Height: 800})
	require.Equal(t, "no", script(other))
	require.True(t, matches(other, "(prefers-color-scheme: dark)"))
	require.True(t, matches(other, "(prefers-reduced-motion: reduce)"))
	require.True(t, matches(other, "print"))
	require.Equal(t, 390, Eval[int](other, "innerWidth"))
}

// The measure of contrast finds what is too pale.
func TestPage_Contrast(t *testing.T) {
	p := Open(t, write(t, `<body style="background: #fff"><p style="color: #000">well<p style="color: #999">pale`), Options{})
	texts := p.texts()
	require.Len(t, texts, 2)
	require.InDelta(t, 21, texts[0].Ratio, 0.05)
	require.InDelta(t, 2.85, texts[1].Ratio, 0.05)
}
