package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

const manHelp = `Man writes a manual page for each command into a folder, which is made if it is not there: sbr.1, sbr-status.1 and so on.

The same program writes the same pages. Their date is that of SOURCE_DATE_EPOCH (seconds since 1970) or of the revision that was built;
without either they have none.`

const manExample = `  sbr man man1 && man -l man1/sbr.1
  sbr man /usr/local/share/man/man1`

func newMan(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "man DIR", Short: "write manual pages", Long: manHelp, Example: manExample, Args: cobra.ExactArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
	}
	c.RunE = verbOf(func(args []string) error { return writeMan(s, args[0]) })
	return c
}

// writeMan writes the pages of all commands.
func writeMan(s streams, dir string) error {
	date, err := manDate()
	if err != nil {
		return badInput{err}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return badInput{err}
	}
	var failed error
	walk(newRoot(s), func(c *cobra.Command) {
		if failed != nil || !c.IsAvailableCommand() && c.HasParent() {
			return
		}
		page, err := manPage(c, date)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, manName(c)+".1"), page, 0o644)
		}
		failed = err
	})
	return failed
}

func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manDate is the date of the pages, the zero time for none.
func manDate() (time.Time, error) {
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %q is not a number of seconds since 1970", epoch)
		}
		return time.Unix(seconds, 0).UTC(), nil
	}
	at, _ := time.Parse(time.RFC3339, buildVersion().Time) // without one: none
	return at, nil
}

// noDate is what package doc makes of the zero time.
const noDate = `"Jan 0001"`

// manPage renders one command, which it changes: texts become Markdown, from which package doc makes the page.
func manPage(c *cobra.Command, date time.Time) ([]byte, error) {
	c.DisableAutoGenTag = true
	c.Long = manText(c.Long)
	c.InitDefaultHelpFlag()
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if strings.Contains(f.Value.Type(), "|") {
			f.Usage += ": " + strings.ReplaceAll(f.Value.Type(), "|", ", ")
		}
		if f.DefValue == defaultOwner() {
			f.DefValue = "USER@HOST" // not of this machine
		}
		f.Usage = escaped(f.Usage)
	})
	var b bytes.Buffer
	header := doc.GenManHeader{Section: "1", Date: &date, Source: "sbr " + buildVersion().Version, Manual: "sbr"}
	if err := doc.GenMan(c, &header, &b); err != nil {
		return nil, err
	}
	page := b.Bytes()
	if date.IsZero() {
		page = bytes.Replace(page, []byte(noDate), []byte(`""`), 1)
	}
	return []byte(roff(string(page))), nil
}

// roff finishes what package doc leaves to chance: how a hyphen is shown (an option must be copied as it is), and other characters than ASCII.
func roff(page string) string {
	var b strings.Builder
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, ".") {
			line = strings.ReplaceAll(line, "-", `\-`)
		}
		for _, r := range line {
			if r > unicode.MaxASCII {
				fmt.Fprintf(&b, `\[u%04X]`, r)
			} else {
				b.WriteRune(r)
			}
		}
	}
	return b.String()
}

// manText turns a help text into Markdown: what is indented stays as it is, the rest is text and nothing else.
func manText(s string) string {
	var b strings.Builder
	indented := false
	for line := range strings.SplitSeq(s, "\n") {
		code := strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t")
		if code != indented && line != "" {
			b.WriteByte('\n')
			indented = code
		}
		if code {
			b.WriteString("    " + line + "\n")
		} else {
			b.WriteString(escaped(strings.TrimLeft(line, "# ")) + "\n")
		}
	}
	return b.String()
}

// escaped keeps Markdown from seeing anything in a text.
func escaped(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune("\\`*_{}[]()#+-.!:|&<>~", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
