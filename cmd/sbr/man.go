package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const manHelp = `Man writes a manual page for each command into a folder, which is made if it is not there: sbr.1, sbr-status.1 and so on.

The same program writes the same pages.`

const manExample = `  sbr man man1 && man -l man1/sbr.1
  sbr man /usr/local/share/man/man1`

func newMan(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "man DIR", Short: "write manual pages", Long: manHelp, Example: manExample, Args: cobra.ExactArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
	}
	c.RunE = verbOf(func(_ *cobra.Command, args []string) error { return writeMan(s, args[0]) })
	return c
}

// writeMan writes the pages of all commands.
func writeMan(s streams, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return badInput{err}
	}
	var failed error
	walk(newRoot(s), func(c *cobra.Command) {
		if failed != nil || !c.IsAvailableCommand() && c.HasParent() {
			return
		}
		failed = os.WriteFile(filepath.Join(dir, manName(c)+".1"), []byte(manPage(c)), 0o644)
	})
	return failed
}

func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage is the page of one command.
func manPage(c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".nh\n.TH %q \"1\" \"\" %q \"sbr\"\n", strings.ToUpper(manName(c)),
		"sbr "+buildVersion().Version)
	section := func(title, text string) {
		fmt.Fprintf(&b, ".SH %s\n%s\n", title, strings.TrimSuffix(text, "\n"))
	}
	section("NAME", roff(manName(c)+" - "+c.Short))
	section("SYNOPSIS", `\fB`+roff(c.UseLine())+`\fP`)
	section("DESCRIPTION", manText(cmp.Or(c.Long, c.Short)))
	section("OPTIONS", manFlags(c))
	if c.Example != "" {
		section("EXAMPLE", manText(c.Example))
	}
	var others []string
	for _, other := range append([]*cobra.Command{c.Parent()}, c.Commands()...) {
		if other != nil && (other == c.Parent() || other.IsAvailableCommand()) {
			others = append(others, `\fB`+roff(manName(other))+`(1)\fP`)
		}
	}
	section("SEE ALSO", strings.Join(others, ", "))
	return b.String()
}

// manFlags are the flags of a command, with their defaults and the words that they take.
func manFlags(c *cobra.Command) string {
	var b strings.Builder
	c.InitDefaultHelpFlag()
	c.Flags().VisitAll(func(f *pflag.Flag) {
		name, is, usage := "--"+f.Name, f.DefValue, f.Usage
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if strings.Contains(f.Value.Type(), "|") {
			usage += ": " + strings.ReplaceAll(f.Value.Type(), "|", ", ")
		}
		fmt.Fprintf(&b, ".TP\n\\fB%s\\fP=%s\n%s\n", roff(name), roff(cmp.Or(is, `""`)), roff(usage))
	})
	return b.String()
}

// manText lays out a help text: what is indented stays as it is, the rest is filled.
func manText(s string) string {
	var b strings.Builder
	code := false
	for line := range strings.SplitSeq(s, "\n") {
		if indented := strings.HasPrefix(line, "  "); indented != code && line != "" {
			b.WriteString(map[bool]string{true: ".EX\n", false: ".EE\n"}[indented])
			code = indented
		}
		if line == "" && !code {
			line = ".PP"
		} else {
			line = roff(line)
		}
		b.WriteString(line + "\n")
	}
	if code {
		b.WriteString(".EE\n")
	}
	return b.String()
}

// roff is text and nothing else: a hyphen is one (an option must be copied as it is), and other characters
// than ASCII are shown.
func roff(text string) string {
	var b strings.Builder
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		b.WriteString(`\&`)
	}
	for _, r := range text {
		switch {
		case r > unicode.MaxASCII:
			fmt.Fprintf(&b, `\[u%04X]`, r)
		case r == '-' || r == '\\':
			b.WriteString(`\` + string(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
