package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/strategies"
)

//go:generate go test . -run ^TestCommandPageIsCurrent$ -update

var update = flag.Bool("update", false, "write docs/cli.md anew")

// docs/cli.md is made of the help of every command: nothing in it can be older than the program.
func TestCommandPageIsCurrent(t *testing.T) {
	const path = "../../docs/cli.md"
	page := commandPage(newRoot(streams{}))
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(page), 0o644))
	}
	is, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, page == string(is), "%s is not what the program says: run make generate", path)
}

func commandPage(root *cobra.Command) string {
	var table, sections strings.Builder
	walk(root, func(c *cobra.Command) {
		if c.HasParent() && (!c.IsAvailableCommand() || c.Parent().Name() == "completion") {
			return
		}
		c.InitDefaultHelpFlag()
		_ = c.Flags().MarkHidden("help") // the same everywhere
		if c.HasParent() {
			fmt.Fprintf(&table, "| [`%s`](#%s) | %s |\n", c.CommandPath(),
				strings.ReplaceAll(c.CommandPath(), " ", "-"), c.Short)
		}
		usage := strings.TrimSpace(c.UsageString())
		if !c.HasParent() {
			usage = "" // its table of commands is above
		}
		fmt.Fprintf(&sections, "\n## %s\n\n%s\n", c.CommandPath(), helpText(c))
		if usage != "" {
			fmt.Fprintf(&sections, "\n```text\n%s\n```\n", usage)
		}
	})
	return "<!-- made by make generate from the help texts of cmd/sbr -->\n\n# Commands\n\n| command | does |\n|---|---|\n" + table.String() + sections.String()
}

// helpText is what a command says of itself. Indented lines are a list that keeps its columns.
func helpText(c *cobra.Command) string {
	var b strings.Builder
	inside := false
	for line := range strings.SplitSeq(cmp.Or(c.Long, c.Short+"."), "\n") {
		indented := strings.HasPrefix(line, "  ")
		switch {
		case indented && !inside:
			b.WriteString("\n```text\n")
		case !indented && inside:
			b.WriteString("```\n")
		}
		inside = indented
		b.WriteString(line + "\n")
	}
	if inside {
		b.WriteString("```\n")
	}
	return strings.ReplaceAll(strings.TrimSpace(b.String()), "\n\n\n", "\n\n")
}

// manPages writes the pages and returns their folder.
func manPages(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "share", "man1")
	var out, errOut bytes.Buffer
	require.Zero(t, run([]string{"man", dir}, streams{in: strings.NewReader(""), out: &out, err: &errOut}),
		errOut.String())
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
	page = unicodeEscape.ReplaceAllStringFunc(page,
		func(s string) string { return map[string]string{`\[u2026]`: "…"}[s] })
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
	out, err := exec.Command(groff, append([]string{"-man", "-ww", "-Tutf8", "-z"},
		pages...)...).CombinedOutput()
	require.NoError(t, err)
	require.Empty(t, string(out))
	text, err := exec.Command(groff, "-man", "-Tutf8", "-P-c", filepath.Join(dir, "sbr-status.1")).Output()
	require.NoError(t, err)
	require.Contains(t, string(text), "--token-file token -o json")
	require.Contains(t, string(text), "--url https://n1.example.com:7380")
}

func TestMan_TextStaysText(t *testing.T) {
	require.Equal(t, "a <b>:\n.PP\n.EX\n  x   *y*\n\n.EE\n\\&.TH c\\-d\n",
		manText("a <b>:\n\n  x   *y*\n\n.TH c-d"))
	require.Equal(t, `\-\-a \\b \[u2026]`, roff(`--a \b …`))
}

// Flags with words, files or folders complete them; of the others only numbers, durations and names are left.
func TestCompletion_EveryFlag(t *testing.T) {
	free := []string{"bool", "int", "uint64", "duration", "A-B", "stringToString"}
	names := []string{
		"context", "endpoint", "holder", "key", "lease", "lease-name", "namespace", "owner", "pause", "role", "service-account", "shard", "singleton", "split", "system", "url",
	}
	available(func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			_, known := c.GetFlagCompletionFunc(f.Name)
			require.True(t, known || slices.Contains(free, f.Value.Type()) || slices.Contains(names, f.Name),
				"%s --%s (%s) offers nothing", c.CommandPath(), f.Name, f.Value.Type())
		})
	})
}

// complete asks for the completions of a command line, as the scripts of the shells do.
func complete(t *testing.T, args ...string) []string {
	t.Helper()
	var out, errOut bytes.Buffer
	require.Zero(t, run(append([]string{"__complete"}, args...),
		streams{in: strings.NewReader(""), out: &out, err: &errOut}))
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

func TestCompletion_Values(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want []string
	}{
		{[]string{"status", "-o", ""}, []string{"text", "json", "yaml", ":4"}},
		{[]string{"manifests", "-o", ""}, []string{"yaml", "json", ":4"}},
		{[]string{"explain", "timing", "--profile", ""}, []string{"lan", "wan", "local", ":4"}},
		{[]string{"config", "check", "-f", ""}, []string{"yaml", "yml", "json", ":8"}},
		{[]string{"lease", "acquire", "--for", ""}, []string{"infinite", ":4"}},
		{[]string{"demo", "--strategy", ""}, append(strategies.Keys(), ":4")},
		{[]string{"explore", "random", "--out", ""}, []string{":16"}},
		{[]string{"status", "--token-file", ""}, []string{":0"}},
		{[]string{"status", "--url", ""}, []string{":4"}},
		{[]string{"status", ""}, []string{":4"}},
		{[]string{"simulate", ""}, []string{":0"}},
		{[]string{"man", ""}, []string{":16"}},
		{[]string{"completion", "z"}, []string{"zsh\tGenerate the autocompletion script for zsh", ":4"}},
	} {
		require.Equal(t, tc.want, complete(t, tc.args...), "%q", tc.args)
	}
}
