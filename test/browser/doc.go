// Package browser opens pages in a real, headless Chromium for tests. The folders below it test the pages of
// the product with it.
//
//	func TestMain(m *testing.M) { os.Exit(browser.Main(m)) }
//
//	func TestPage(t *testing.T) {
//		page := browser.Open(t, "file:///tmp/report.html", browser.Options{})
//		require.Equal(t, "Report", browser.Eval[string](page, "document.title"))
//		require.Empty(t, page.Problems())
//	}
//
// One Chromium serves all tests of a process; each page is a tab of its own. The Chromium is the program that
// SBR_BROWSER names, else the first of chromium, chromium-browser, google-chrome and google-chrome-stable in
// PATH. Without one a test fails and says how to get one; with -short it is skipped.
//
// Guarantees: no host name resolves, so that a page finds no network but 127.0.0.1; every request is recorded
// all the same. The Chromium ends with the test process.
//
// Non-guarantees: as root Chromium runs without its sandbox, because it refuses to run otherwise. Open pages
// of your own only.
package browser
