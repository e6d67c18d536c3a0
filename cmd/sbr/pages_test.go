package main

//go:generate go test . -run ^TestCommandPageIsCurrent$ -update

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

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
			fmt.Fprintf(&table, "| [`%s`](#%s) | %s |\n", c.CommandPath(), strings.ReplaceAll(c.CommandPath(), " ", "-"), c.Short)
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
