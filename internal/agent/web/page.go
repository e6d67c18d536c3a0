package web

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page, its style and its script
	"encoding/base64"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"time"
)

//go:embed page.gohtml
var pageText string

//go:embed page.css
var style string

//go:embed page.js
var script string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"number":   number,
	"toneSign": func(tone string) string { return toneSigns[tone] },
}).Parse(pageText))

// policy lets the page load nothing but its feed, run nothing but its own script, and turn no text into markup.
var policy = "default-src 'none'; connect-src 'self'; img-src data:; style-src '" + hash(style) + "'; script-src '" + hash(script) +
	"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// pageView is what the template is given.
type pageView struct {
	*view
	Style   template.CSS
	Script  template.JS
	Zone    string
	Left    string // until the deadline
	Refresh int    // seconds, for browsers without JavaScript
	Journal []entryAnswer
}

// refresh is how often the page renews itself in a browser without JavaScript, in seconds.
const refresh = 5

func (s *Server) page(w http.ResponseWriter, _ *http.Request) {
	now := time.Now()
	r := read(s.feed.source)
	v := pageView{view: viewOf(r), Style: template.CSS(style), Script: template.JS(script), Zone: now.Local().Format("MST"), Refresh: refresh} // our own files
	if v.Countdown != nil {
		v.Left = left(r.Deadline.Sub(now))
	}
	for i := range slices.Backward(r.entries) {
		v.Journal = append(v.Journal, s.feed.entry(&r.entries[i]))
	}
	var b bytes.Buffer
	if err := page.ExecuteTemplate(&b, "page", v); err != nil {
		s.log.Error("sbr: the status page cannot be written", "error", err)
		http.Error(w, "the page cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	_, _ = w.Write(b.Bytes()) // whoever went away does not want it
}

// left says how long it is until a deadline. The script has the same.
func left(d time.Duration) string {
	if d < time.Second/2 {
		return "due"
	}
	return "in " + span(d)
}
