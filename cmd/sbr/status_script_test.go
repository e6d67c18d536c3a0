package main

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// agentDate is the clock of the agents in scripts.
const agentDate = "Sat, 21 Nov 2026 17:11:00 GMT"

// fakeAgent KIND FILE starts a server in the place of an agent, or of a service with shards: its answer is
// what the file holds when it is asked. SBR_URL is its address, and the file CA.pem its certificate. Kinds:
// plain, tls, token (it wants the token of the file "token"), and those that are broken in some way.
func fakeAgent(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: agent kind file")
	}
	kind, path := args[0], ts.MkAbs(args[1])
	answer, ok := brokenAgents[kind]
	if !ok {
		answer = func(w http.ResponseWriter, _ *http.Request, status []byte) { _, _ = w.Write(status) }
	}
	var server *httptest.Server
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", agentDate)
		if token, err := os.ReadFile(ts.MkAbs("token")); kind == "token" && err == nil && r.Header.Get("Authorization") != "Bearer "+strings.TrimSpace(string(token)) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.URL.Path == "/down" && r.Method == http.MethodPost && fakeDown(ts, w, r) {
			return
		}
		if r.URL.Path != "/status" && r.URL.Path != "/shards" || r.Method != http.MethodGet {
			http.NotFound(w, r)
			return
		}
		data, err := os.ReadFile(path)
		if err != nil {
			server.CloseClientConnections() // as if the agent were restarted
			return
		}
		answer(w, r, data)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if kind == "tls" {
		server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		server.StartTLS()
		block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		ts.Check(os.WriteFile(ts.MkAbs("CA.pem"), block, 0o600))
	} else {
		server.Start()
	}
	ts.Defer(func() {
		server.CloseClientConnections()
		server.Close()
	})
	ts.Setenv("SBR_URL", server.URL)
	ts.Setenv("SBR_HOST", strings.TrimPrefix(strings.TrimPrefix(server.URL, "http://"), "https://"))
}

// fakeDown answers POST /down with the file "down": a status, and the answer behind a blank. What was asked
// is in the file "asked" then.
func fakeDown(ts *testscript.TestScript, w http.ResponseWriter, r *http.Request) bool {
	answer, err := os.ReadFile(ts.MkAbs("down"))
	if err != nil {
		return false
	}
	asked, err := io.ReadAll(r.Body)
	if err == nil {
		err = os.WriteFile(ts.MkAbs("asked"), asked, 0o600)
	}
	code, body, _ := strings.Cut(string(answer), " ")
	status, bad := strconv.Atoi(code)
	if err != nil || bad != nil || status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
	return true
}

// brokenAgents are services that do not answer as an agent does.
var brokenAgents = map[string]func(http.ResponseWriter, *http.Request, []byte){
	"half": func(w http.ResponseWriter, _ *http.Request, status []byte) {
		w.Header().Set("Content-Length", "100000")
		_, _ = w.Write(status)
	},
	"cut": func(w http.ResponseWriter, _ *http.Request, status []byte) { _, _ = w.Write(status[:len(status)/2]) },
	"html": func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		_, _ = io.WriteString(w, "<!doctype html><title>It works!</title>")
	},
	"endless": func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		for err := error(nil); err == nil; { // until nobody reads it any more
			_, err = w.Write(make([]byte, 1<<20))
		}
	},
	"silent": func(_ http.ResponseWriter, r *http.Request, _ []byte) { <-r.Context().Done() },
	"slow": func(w http.ResponseWriter, r *http.Request, status []byte) {
		_, _ = w.Write(status[:1])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	},
	"redirect": func(w http.ResponseWriter, r *http.Request, _ []byte) {
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	},
	"forbidden": func(w http.ResponseWriter, _ *http.Request, _ []byte) { w.WriteHeader(http.StatusForbidden) },
	"failing":   func(w http.ResponseWriter, _ *http.Request, _ []byte) { w.WriteHeader(http.StatusServiceUnavailable) },
	"hangs-up":  func(http.ResponseWriter, *http.Request, []byte) { panic(http.ErrAbortHandler) },
}

// waitfor FILE TEXT waits until the text appears in a file that a command in the background writes.
func waitfor(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: waitfor file text")
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if data, err := os.ReadFile(ts.MkAbs(args[0])); err == nil && strings.Contains(string(data), args[1]) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%q does not appear in %s", args[1], args[0])
		}
	}
}
