package web

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed" // the page, its style and its scripts
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/serf-sbr/serf-sbr/downing"
)

// The paths that need no token.
const (
	pathLive  = "/healthz/live"
	pathReady = "/healthz/ready"
)

// route is what a path does. Most paths are read; a path with a text for other methods takes POST alone.
type route struct {
	http.Handler
	post string
}

// headers are on every answer, refusals included.
var headers = map[string]string{
	"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
	"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-store",
}

// handler puts the paths behind what every request has to pass: nothing is changed but at the paths that are
// for it; a loopback address has no other name (a web site whose name leads here could read the answers); and
// the token, where there is one.
func (s *Server) handler(o *Options, guard *token, loopback bool) http.Handler {
	routes := map[string]route{
		"/":           {Handler: http.HandlerFunc(s.page)},
		"/status":     {Handler: s.json(func() any { return o.Source.Status() })},
		"/events":     {Handler: http.HandlerFunc(s.events)},
		pathLive:      {Handler: s.health(func(h Health) Check { return h.Live })},
		pathReady:     {Handler: s.health(func(h Health) Check { return h.Ready })},
		"/metrics":    {Handler: o.Metrics},
		"/singletons": {Handler: s.json(func() any { return append([]downing.SingletonStatus{}, o.Source.Status().Singletons...) })},
		"/run":        {o.Programs, "programs are attached here, by sbr run: use POST"},
		"/down":       {s.down(o.Down, guard == nil && !loopback), "members are downed here, by sbr down: use POST"},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for key, value := range headers {
			w.Header().Set(key, value)
		}
		is := routes[r.URL.Path]
		allowed, use := []string{http.MethodGet, http.MethodHead}, "nothing can be changed here: use GET"
		if is.post != "" {
			allowed, use = []string{http.MethodPost}, is.post
		}
		switch {
		case !slices.Contains(allowed, r.Method):
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			http.Error(w, use, http.StatusMethodNotAllowed)
		case loopback && !loopbackHost(r.Host):
			http.Error(w, fmt.Sprintf("this address answers to localhost only, not to %q", r.Host),
				http.StatusMisdirectedRequest)
		case guard != nil && !guard.admits(w, r):
		case is.Handler == nil:
			http.Error(w, "no such page: there are / /status /events /metrics /healthz/live /healthz/ready",
				http.StatusNotFound)
		default:
			is.ServeHTTP(w, r)
		}
	})
}

// loopbackHost reports whether a Host header names the loopback. An empty header does: every browser sends a
// host.
func loopbackHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return err == nil && ip.Unmap().IsLoopback()
}

// json answers with what show returns.
func (s *Server) json(show func() any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, err := json.MarshalIndent(show(), "", "  ")
		if err != nil {
			s.log.Error("sbr: an answer cannot be written", "path", r.URL.Path, "error", err)
			http.Error(w, "the answer cannot be written", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(append(text, '\n')) // the client may have gone
	}
}

func (s *Server) health(which func(Health) Check) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		c := which(s.feed.source.Health())
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		text := "ok"
		if !c.OK {
			text = cmp.Or(oneLine(c.Reason), "not ok")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprintln(w, text)
	}
}

// oneLine makes text that may quote the names of others fit for a log and a terminal.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		default:
			return r
		}
	}, text)
}

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
var pageHead, pageTail, _ = strings.Cut(strings.NewReplacer("STYLE", style, "WORDS", words, "SCRIPT",
	script).Replace(pageText), "FIRST")

// policy lets the page load nothing but its feed, run nothing but its own scripts, and turn no text into
// markup.
var policy = "default-src 'none'; connect-src 'self'; img-src data:; style-src " + hash(style) +
	"; script-src " + hash(words) + " " + hash(script) +
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
