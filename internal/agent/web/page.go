package web

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page, its style and its script
	"encoding/base64"
	"html/template"
	"net/http"
	"strconv"
	"time"
)

//go:embed page.gohtml
var pageText string

//go:embed page.css
var style string

//go:embed page.js
var script string

var page = template.Must(template.New("page").Parse(pageText))

// policy lets the page load nothing but its feed, run nothing but its own script, and turn no text into markup.
var policy = "default-src 'none'; connect-src 'self'; img-src data:; style-src '" + hash(style) + "'; script-src '" + hash(script) +
	"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// pageView is what the template is given.
type pageView struct {
	Style  template.CSS
	Script template.JS
	Zone   string
	First  firstView
}

// firstView is what the script draws before the feed says anything, and where the feed refuses it.
type firstView struct {
	View        *view        `json:"view"`
	Occurrences []firstEntry `json:"occurrences"`
}

// firstEntry is what is shown of an entry: its raw text may hold what reorders others, and stays away from the page.
type firstEntry struct {
	ID   string    `json:"id"`
	View entryView `json:"view"`
}

func (s *Server) page(w http.ResponseWriter, _ *http.Request) {
	r := read(s.feed.source)
	v := pageView{
		Style: template.CSS(style), Script: template.JS(script), // our own files
		Zone: time.Now().Local().Format("MST"), First: firstView{View: viewOf(r), Occurrences: []firstEntry{}},
	}
	for i := range r.entries {
		e := s.feed.entry(&r.entries[i])
		v.First.Occurrences = append(v.First.Occurrences, firstEntry{ID: e.ID, View: e.View})
	}
	var b bytes.Buffer
	if err := page.Execute(&b, v); err != nil {
		s.log.Error("sbr: the status page cannot be written", "error", err)
		http.Error(w, "the page cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	_, _ = w.Write(b.Bytes()) // whoever went away does not want it
}
