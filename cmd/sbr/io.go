package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
)

// format is the value of -o.
type format string

const (
	formatText format = "text"
	formatJSON format = "json"
)

// String, Set and Type make format a flag value that refuses other words.
func (f *format) String() string { return string(*f) }

// Set implements pflag.Value.
func (f *format) Set(s string) error {
	if err := strictyaml.OneOf(s, []string{string(formatText), string(formatJSON)}); err != nil {
		return err
	}
	*f = format(s)
	return nil
}

// Type implements pflag.Value; it is the placeholder in the help.
func (*format) Type() string { return "text|json" }

// addFormat gives a command the flag -o.
func addFormat(c *cobra.Command) *format {
	f := formatText
	c.Flags().VarP(&f, "output", "o", "how the answer is written")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return &f
}

// addFile gives a command the flag -f.
func addFile(c *cobra.Command) *string {
	return c.Flags().StringP("file", "f", "", "read this file instead of the standard input (YAML or JSON)")
}

// readInput reads at most limit bytes, and one more by which the reader of the data knows that there are too many.
// The name is that of the file, or "standard input". An empty path or "-" is the standard input.
func readInput(path string, stdin io.Reader, limit int64) (name string, data []byte, err error) {
	from, name := stdin, "standard input"
	if path == "" || path == "-" {
		if path == "" && isTerminal(stdin) {
			return "", nil, badInput{errors.New("no input: give a file (-f FILE), or pipe it in")}
		}
	} else {
		if err := notPipe(path); err != nil {
			return "", nil, badInput{err}
		}
		file, err := os.Open(path)
		if err != nil {
			return "", nil, badInput{err}
		}
		defer func() { _ = file.Close() }() // it was only read
		from, name = file, path
	}
	data, err = io.ReadAll(io.LimitReader(from, limit+1))
	if err != nil {
		return "", nil, badInput{fmt.Errorf("%s: %w", name, err)}
	}
	return name, data, nil
}

// notPipe refuses a named pipe: to open one waits until somebody writes to it. Those that a shell makes for a command have names of their own.
func notPipe(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Mode()&fs.ModeNamedPipe == 0 || strings.HasPrefix(path, "/dev/") || strings.HasPrefix(path, "/proc/") {
		return nil // what is wrong otherwise, opening it says
	}
	return fmt.Errorf("%s: is a named pipe: give a file, or - to read the standard input", path)
}

// writeJSON writes one indented object.
func writeJSON(to io.Writer, v any) error {
	enc := json.NewEncoder(to)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// painter colours text on a terminal, and leaves it alone elsewhere. NO_COLOR switches it off (no-color.org).
type painter bool

func paint(out io.Writer) painter {
	return painter(isTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
}

func (p painter) in(code, s string) string {
	if !p || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p painter) bold(s string) string   { return p.in("1", s) }
func (p painter) red(s string) string    { return p.in("31", s) }
func (p painter) green(s string) string  { return p.in("32", s) }
func (p painter) yellow(s string) string { return p.in("33", s) }
