package web

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page, its style and its scripts
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

//go:embed page.html
var pageText string

//go:embed page.css
var style string

// words puts a state into words; it knows no page.
//
//go:embed words.js
var words string

// script draws them.
//
//go:embed page.js
var script string

// The page as it is for everybody, before and after the state that it is given to draw first.
var pageHead, pageTail, _ = strings.Cut(strings.NewReplacer("STYLE", style, "WORDS", words, "SCRIPT", script).Replace(pageText), "FIRST")

// policy lets the page load nothing but its feed, run nothing but its own scripts, and turn no text into
// markup.
var policy = "default-src 'none'; connect-src 'self'; img-src data:; style-src " + hash(style) + "; script-src " + hash(words) + " " + hash(script) +
	"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// page is given the state and the history with it: they are drawn before the feed says anything, and where
// the feed refuses the page.
func (s *Server) page(w http.ResponseWriter, _ *http.Request) {
	first := struct {
		State       state        `json:"state"`
		Occurrences []occurrence `json:"occurrences"`
	}{s.feed.state(), []occurrence{}}
	for _, e := range s.feed.source.Journal() {
		first.Occurrences = append(first.Occurrences, s.feed.occurrence(&e))
	}
	text, err := json.Marshal(first) // what could end a script is escaped
	if err != nil {
		s.log.Error("sbr: the status page cannot be written", "error", err)
		http.Error(w, "the page cannot be written", http.StatusInternalServerError)
		return
	}
	page := bytes.Join([][]byte{[]byte(pageHead), text, []byte(pageTail)}, nil)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(page)))
	_, _ = w.Write(page) // the client may have gone away
}
