package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"unicode"
)

// The paths that need no token.
const (
	pathLive  = "/healthz/live"
	pathReady = "/healthz/ready"
)

// route is what a path does. Most are read; one with a text for other methods takes POST alone.
type route struct {
	http.Handler
	post string
}

// handler puts the paths behind what every request has to pass.
func (s *Server) handler(o *Options, guard *token, loopback bool) http.Handler {
	routes := map[string]route{
		"/":       {Handler: http.HandlerFunc(s.page)},
		"/status": {Handler: s.json(func() any { return o.Source.Status() })},
		"/events": {Handler: http.HandlerFunc(s.events)},
		pathLive:  {Handler: s.health(func(h Health) Check { return h.Live })},
		pathReady: {Handler: s.health(func(h Health) Check { return h.Ready })},
	}
	if o.Metrics != nil {
		routes["/metrics"] = route{Handler: o.Metrics}
	}
	if o.Singletons != nil {
		routes["/singletons"] = route{Handler: s.json(o.Singletons)}
	}
	if o.Programs != nil {
		routes["/run"] = route{o.Programs, "programs are attached here, by sbr run: use POST"}
	}
	if o.Down != nil {
		routes["/down"] = route{s.down(o.Down, guard == nil && !loopback), "members are downed here, by sbr down: use POST"}
	}
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		is, ok := routes[r.URL.Path]
		if !ok {
			http.Error(w, "no such page: there are / /status /events /metrics /healthz/live /healthz/ready", http.StatusNotFound)
			return
		}
		is.ServeHTTP(w, r)
	})
	if guard != nil {
		h = guard.guard(h)
	}
	if loopback {
		h = ownHost(h)
	}
	return readOnly(h, routes)
}

// readOnly lets nobody change anything but at the paths that are for it. Its headers are on every answer, refusals included.
func readOnly(next http.Handler, routes map[string]route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cache-Control", "no-store")
		allowed, use := []string{http.MethodGet, http.MethodHead}, "nothing can be changed here: use GET"
		if post := routes[r.URL.Path].post; post != "" {
			allowed, use = []string{http.MethodPost}, post
		}
		if !slices.Contains(allowed, r.Method) {
			h.Set("Allow", strings.Join(allowed, ", "))
			http.Error(w, use, http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ownHost refuses requests that came to a loopback address under another name: a web site whose name leads here could read the answers.
func ownHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !loopbackHost(r.Host) {
			http.Error(w, fmt.Sprintf("this address answers to localhost only, not to %q", r.Host), http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// loopbackHost reports whether a Host header names the loopback. An empty one does: every browser sends one.
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
		_, _ = w.Write(append(text, '\n')) // whoever went away does not want it
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
