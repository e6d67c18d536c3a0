package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
	"golang.org/x/term"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
)

// Values of the flag -o.
const (
	formatText  = "text"
	formatJSON  = "json"
	formatYAML  = "yaml"
	formatJUnit = "junit"
)

// word is the value of a flag that is one of a few words, in letters of any case, and refuses others.
// Completion and manual take them from Type.
type word struct {
	is    *string
	known []string
}

// String implements pflag.Value, as Set and Type do.
func (w word) String() string {
	if w.is == nil {
		return ""
	}
	return *w.is
}

// Set takes one of the known words.
func (w word) Set(s string) error {
	if err := strictyaml.OneOf(strings.ToLower(s), w.known); err != nil {
		return err
	}
	*w.is = strings.ToLower(s)
	return nil
}

func (w word) Type() string { return strings.Join(w.known, "|") }

// addWord gives a command a flag that takes one of the known words, and returns the word. A name without a
// shorthand has an empty one.
func addWord(c *cobra.Command, name, shorthand, is, usage string, known ...string) *string {
	c.Flags().VarP(word{&is, known}, name, shorthand, usage)
	return &is
}

// addFormat gives a command the flag -o: text, json or yaml.
func addFormat(c *cobra.Command) *string {
	return addWord(c, "output", "o", formatText, "how the answer is written", formatText, formatJSON, formatYAML)
}

// print writes an answer: as JSON or YAML, or as text for people.
func (s streams) print(output string, answer any, text func(io.Writer) error) error {
	if output == formatText {
		return text(s.out)
	}
	return writeObject(s.out, output, answer)
}

// show is print for a text that is made as a whole.
func (s streams) show(output string, answer any, text func(painter) string) error {
	return s.print(output, answer, func(to io.Writer) error {
		_, err := io.WriteString(to, text(paint(to)))
		return err
	})
}

// outcome writes what became of something: as an object in any case, as the text done only where it did not
// fail.
func (s streams) outcome(output string, answer any, done string, failed error) error {
	if output != formatText {
		return errors.Join(writeObject(s.out, output, answer), failed)
	}
	if failed != nil {
		return failed
	}
	_, err := fmt.Fprintln(s.out, done)
	return err
}

// message is outcome for what says in one message, done or not, what became of something.
func (s streams) message(output string, answer any, message string, done bool) error {
	if message = clean(message); !done {
		return s.outcome(output, answer, "", errors.New(message))
	}
	return s.outcome(output, answer, message, nil)
}

// table aligns columns. A coloured cell is the last one of its row: escape sequences would count as width.
func table(rows ...[]string) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, cells := range rows {
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	_ = t.Flush() // a strings.Builder takes everything
	return b.String()
}

// first joins the first few of many, and says how many more there are.
func first(most int, all []string, sep string) string {
	text := strings.Join(all[:min(len(all), most)], sep)
	if more := len(all) - most; more > 0 {
		text += fmt.Sprintf("%sand %d more", sep, more)
	}
	return text
}

// addConfig adds the flag -f, --config: a configuration (sbr.yaml). Its name is the same at every command.
func addConfig(flags *pflag.FlagSet, to *string, usage string) {
	flags.StringVarP(to, "config", "f", "", "the configuration (sbr.yaml)"+usage)
}

// readInput reads at most limit bytes, and one more by which the reader of the data knows that there are too
// many. The name is that of the file, or "standard input". An empty path or "-" is the standard input.
func readInput(path string, stdin io.Reader, limit int64) (name string, data []byte, err error) {
	switch {
	case path == "" && isTerminal(stdin):
		return "", nil, badInput{errors.New("no input: give a file (-f FILE), or pipe it in")}
	case path == "" || path == "-":
		name = "standard input"
		data, err = io.ReadAll(io.LimitReader(stdin, limit+1))
	default:
		name = path
		data, err = readFile(path, limit)
	}
	if err != nil {
		return "", nil, badInput{err}
	}
	return name, data, nil
}

// readFile reads at most limit bytes of a file, and one more.
func readFile(path string, limit int64) ([]byte, error) {
	if err := notPipe(path); err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	return io.ReadAll(io.LimitReader(file, limit+1))
}

// notPipe refuses a named pipe: to open one waits for its writer. Pipes that a shell makes for a command have
// names of their own.
func notPipe(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Mode()&fs.ModeNamedPipe == 0 || strings.HasPrefix(path, "/dev/") ||
		strings.HasPrefix(path, "/proc/") {
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

// writeObject writes one object as JSON or as YAML. Both have the same keys in the same order. JSON of others
// stays as it came.
func writeObject(to io.Writer, output string, v any) error {
	if raw, is := v.(json.RawMessage); is && output != formatYAML {
		_, err := fmt.Fprintln(to, strings.TrimSuffix(string(raw), "\n"))
		return err
	} else if output != formatYAML {
		return writeJSON(to, v)
	}
	text, err := asYAML(v)
	if err == nil {
		_, err = io.WriteString(to, text)
	}
	return err
}

// asYAML is what would be written as JSON, as YAML. A JSON text is a YAML text: only its style changes.
func asYAML(v any) (string, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return "", err
	}
	plainStyle(&doc)
	var b strings.Builder
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	err = enc.Encode(&doc)
	return b.String(), err
}

// plainStyle drops the style of JSON. A text that reads as something else without quotes keeps its tag, and
// so its quotes.
func plainStyle(n *yaml.Node) {
	n.Style = 0
	for _, inner := range n.Content {
		plainStyle(inner)
	}
}

// writeChange writes one of several objects: JSON on a line of its own, YAML as a document.
func writeChange(to io.Writer, output string, v any) error {
	if output == formatYAML {
		text, err := asYAML(v)
		if err == nil {
			_, err = io.WriteString(to, "---\n"+text)
		}
		return err
	}
	enc := json.NewEncoder(to)
	enc.SetEscapeHTML(false)
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

// progress is one line on a terminal that says how far a long run is. Elsewhere it shows nothing. Several
// goroutines may use it.
type progress struct {
	to    io.Writer // nil where nobody looks
	what  string
	total uint64

	mu               sync.Mutex
	last             time.Time
	finished, failed uint64
}

// newProgress shows how many of total things are over. It shows nothing of what takes no time to speak of.
func newProgress(to io.Writer, what string, total uint64) *progress {
	if !isTerminal(to) {
		to = nil
	}
	return &progress{to: to, what: what, total: total, last: time.Now()}
}

// done counts one more, and draws the line anew a few times a second.
func (p *progress) done(failed bool) {
	const every = 200 * time.Millisecond
	if p.to == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.finished++; failed {
		p.failed++
	}
	if now := time.Now(); now.Sub(p.last) >= every {
		p.last = now
		of := ""
		if p.total != math.MaxUint64 {
			of = " of " + thousands(p.total)
		}
		fmt.Fprintf(p.to, "\r\x1b[K%s%s %ss, %s failed", thousands(p.finished), of, p.what, thousands(p.failed))
	}
}

// end wipes the line.
func (p *progress) end() {
	if p.to != nil {
		fmt.Fprint(p.to, "\r\x1b[K")
	}
}

func perSecond(n uint64, took time.Duration) uint64 {
	if took <= 0 {
		return 0
	}
	return uint64(float64(n) / took.Seconds())
}

// thousands writes 1234567 as 1,234,567.
func thousands[N int | uint64](n N) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// count is "1 run" or "12 runs".
func count[N int | uint64](n N, what string) string { return plural(fmt.Sprint(n), what) }

// countThousands is count with separators: "1,234 runs".
func countThousands(n uint64, what string) string { return plural(thousands(n), what) }

func plural(n, what string) string {
	if n != "1" {
		what += "s"
	}
	return n + " " + what
}
