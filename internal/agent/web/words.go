package web

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// maxListed is how much of a name is shown where there are several.
const maxListed = 48

// maxName is how much of a name is shown. Serf allows 128 bytes where it checks at all.
const maxName = 128

// clean makes what another member chose fit to be shown: no character that is invisible or reorders the text around it.
func clean(text string) string {
	var b strings.Builder
	foreign, n := false, 0
	for _, r := range text {
		if n++; n > maxName {
			b.WriteString("…")
			break
		}
		if hidden(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		foreign = foreign || r > unicode.MaxASCII
		b.WriteRune(r)
	}
	if foreign { // isolated, so that a name that is written from right to left leaves the sentence alone
		return string(isolate) + b.String() + string(isolated)
	}
	return b.String()
}

// isolate and isolated keep what stands between them from reordering what stands around it.
const isolate, isolated = '\u2068', '\u2069'

// hidden reports whether a character cannot be seen, or moves others.
func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) || r == unicode.ReplacementChar
}

// line makes a sentence of this program, which may quote names, fit to be shown.
func line(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			b.WriteByte(' ')
		case hidden(r) && r != isolate && r != isolated: // clean may have been here before
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// nameOf is the member name of an incarnation.
func nameOf(incarnation string) string {
	name, _, _ := strings.Cut(incarnation, "#")
	return name
}

// list names a few of many: n1, n2 and 3 more.
func list(names []string, most int) string {
	shown := names
	if len(names) > most {
		shown = names[:most-1]
	}
	words := make([]string, len(shown), most+1)
	for i, n := range shown {
		words[i] = short(clean(n), maxListed)
	}
	if left := len(names) - len(shown); left > 0 {
		words = append(words, number(left)+" more")
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// number puts commas into large numbers.
func number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// count is one member, 2 members.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + many
}

// sentence ends what is said of something, once.
func sentence(text string) string {
	text = line(strings.TrimSpace(text))
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

func clock(t time.Time) string { return t.Local().Format("15:04:05 MST") }

func stamp(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

// stateWords say what a state is.
var stateWords = map[sbr.State]string{
	downing.StateStarting: "waiting to start", sbr.StateArming: "starting", sbr.StateUp: "up", sbr.StateSuspended: "suspended",
	sbr.StateWaiting: "waiting for the lease", sbr.StateDown: "down",
}

// kindWords say what an occurrence is where its kind alone does not.
var kindWords = map[string]string{
	"asking-for-the-lease": "asks for the lease", "lease-granted": "lease granted", "lease-held": "lease held", "lease-unknown": "lease unknown",
	"lease-released": "lease released", "lease-lost": "lease lost",
	"agent-silent": "agent silent", "agent-answers": "agent answers", "told": "told", "paused": "was paused",
}

func kindWord(kind string) string {
	if w, ok := kindWords[kind]; ok {
		return w
	}
	return line(kind)
}
