package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// manPages writes the pages and returns their folder.
func manPages(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "share", "man1")
	var out, errOut bytes.Buffer
	require.Zero(t, run([]string{"man", dir}, streams{in: strings.NewReader(""), out: &out, err: &errOut}), errOut.String())
	require.Empty(t, out.String())
	require.Empty(t, errOut.String())
	return dir
}

// available calls f with every command that the help lists.
func available(f func(*cobra.Command)) {
	walk(newRoot(streams{}), func(c *cobra.Command) {
		if c.IsAvailableCommand() || !c.HasParent() {
			f(c)
		}
	})
}

// Every command has a page with all its flags and all the words of its help, and no page is without a
// command.
func TestMan_EveryCommandAndFlag(t *testing.T) {
	dir := manPages(t)
	pages := 0
	available(func(c *cobra.Command) {
		pages++
		data, err := os.ReadFile(filepath.Join(dir, manName(c)+".1"))
		require.NoError(t, err)
		require.NotContains(t, string(data), "spf13")
		page := plain(string(data))
		require.Contains(t, page, `.TH "`+strings.ToUpper(manName(c))+`" "1" "" "sbr `)
		require.Contains(t, page, manName(c)+" - "+c.Short)
		c.Flags().VisitAll(func(f *pflag.Flag) {
			require.Contains(t, page, "--"+f.Name, c.CommandPath())
			contains(t, page, f.Usage)
		})
		contains(t, page, c.Long)
		contains(t, page, c.Example)
		require.NotContains(t, page, "@"+hostName(), "nothing of this machine")
	})
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, pages)
	require.Greater(t, pages, 20)
}

// contains checks that all words of a text are on a page, in order.
func contains(t *testing.T, page, text string) {
	t.Helper()
	for word := range strings.FieldsSeq(text) {
		if word = strings.TrimLeft(word, "#"); word == "" {
			continue
		}
		at := strings.Index(page, word)
		require.GreaterOrEqual(t, at, 0, "%q of %q is lost, or out of order", word, text)
		page = page[at+len(word):]
	}
}

var unicodeEscape = regexp.MustCompile(`\\\[u[0-9A-F]{4}\]`)

// plain undoes the escapes of roff.
func plain(page string) string {
	page = unicodeEscape.ReplaceAllStringFunc(page, func(s string) string { return map[string]string{`\[u2026]`: "…"}[s] })
	return strings.NewReplacer(`\-`, "-", `\&`, "", `\fB`, "", `\fP`, "", `\\`, `\`).Replace(page)
}

// The formatter finds nothing to complain about, and shows the options as they are typed.
func TestMan_Formatter(t *testing.T) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("no groff here")
	}
	dir := manPages(t)
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	require.NoError(t, err)
	out, err := exec.Command(groff, append([]string{"-man", "-ww", "-Tutf8", "-z"}, pages...)...).CombinedOutput()
	require.NoError(t, err)
	require.Empty(t, string(out))
	text, err := exec.Command(groff, "-man", "-Tutf8", "-P-c", filepath.Join(dir, "sbr-status.1")).Output()
	require.NoError(t, err)
	require.Contains(t, string(text), "--token-file token -o json")
	require.Contains(t, string(text), "--url https://n1.example.com:7380")
}

func TestMan_TextStaysText(t *testing.T) {
	require.Equal(t, "a <b>:\n.PP\n.EX\n  x   *y*\n\n.EE\n\\&.TH c\\-d\n", manText("a <b>:\n\n  x   *y*\n\n.TH c-d"))
	require.Equal(t, `\-\-a \\b \[u2026]`, roff(`--a \b …`))
}
