package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"sbr": main})
}

// TestScript runs the scripts under testdata/script. Each is a document: what one part of the program
// promises.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "", // rewrites what cmp compares with
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"evaluate": evaluate,
			"answer":   answer,
			"same":     same,
			"status":   status,
			"bad":      bad,
			"junk":     junk,
			"agent":    fakeAgent,
			"waitfor":  waitfor,

			"waitagent": waitagent,
		},
	})
}

// evaluate FILE is `exec sbr decide -f FILE -o json` without a process of its own: there are many of them.
func evaluate(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 || neg {
		ts.Fatalf("usage: evaluate file")
	}
	s := streams{in: strings.NewReader(""), out: ts.Stdout(), err: ts.Stderr()}
	if code := run([]string{"decide", "-f", ts.MkAbs(args[0]), "-o", "json"}, s); code != 0 {
		ts.Fatalf("exit status %d", code)
	}
}

// answer KEY VALUE compares a key of the JSON object that the last command printed; lists and booleans as
// compact JSON.
func answer(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: answer key value")
	}
	var got map[string]json.RawMessage
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &got))
	raw, ok := got[args[0]]
	if !ok {
		ts.Fatalf("the answer has no key %q", args[0])
	}
	var compact bytes.Buffer
	ts.Check(json.Compact(&compact, raw))
	have := compact.String()
	var text string
	if json.Unmarshal(raw, &text) == nil {
		have = text
	}
	if have != args[1] {
		ts.Fatalf("%s is %s, want %s", args[0], have, args[1])
	}
}

// status CODE COMMAND… runs the program and compares its exit status; stdin is the file "in" if there is one.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || neg {
		ts.Fatalf("usage: status code arguments…")
	}
	in, err := os.Open(ts.MkAbs("in"))
	if err != nil {
		in, err = os.Open(os.DevNull)
	}
	ts.Check(err)
	defer func() { _ = in.Close() }()
	var out, errOut bytes.Buffer
	code := run(absolute(ts, args[1:]), streams{in: in, out: &out, err: &errOut})
	ts.Check(os.WriteFile(ts.MkAbs("out"), out.Bytes(), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("err"), errOut.Bytes(), 0o600))
	if want := args[0]; string(rune('0'+code)) != want {
		ts.Fatalf("exit status %d, want %s\n%s%s", code, want, out.String(), errOut.String())
	}
}

// bad PATTERN ARGUMENTS… runs the program, and expects that nothing is printed but one line on standard
// error, which matches as a whole, and exit status 2.
func bad(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 1 || neg {
		ts.Fatalf("usage: bad pattern arguments…")
	}
	err := ts.Exec("sbr", args[1:]...)
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != 2 {
		ts.Fatalf("%v, want exit status 2", err)
	}
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("printed %q", out)
	}
	if line := ts.ReadFile("stderr"); !regexp.MustCompile(`^` + args[0] + `\n$`).MatchString(line) {
		ts.Fatalf("standard error is\n%sand does not match\n%s", line, args[0])
	}
}

// absolute turns the argument of -f into a path of the script, for the program runs in the test's own folder
// here.
func absolute(ts *testscript.TestScript, args []string) []string {
	for i := 1; i < len(args); i++ {
		if args[i-1] == "-f" && args[i] != "-" {
			args[i] = ts.MkAbs(args[i])
		}
	}
	return args
}

// junk FILE writes 10 MB of one kind of rubbish: random bytes, or a text repeated.
func junk(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 1 || neg {
		ts.Fatalf("usage: junk file [text]")
	}
	const size = 10 << 20
	data := make([]byte, size)
	if len(args) == 1 {
		_, err := rand.NewChaCha8([32]byte{7}).Read(data)
		ts.Check(err)
	} else {
		data = bytes.Repeat([]byte(args[1]), size/len(args[1]))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o600))
}

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
		if token, err := os.ReadFile(ts.MkAbs("token")); kind == "token" && err == nil &&
			r.Header.Get("Authorization") != "Bearer "+strings.TrimSpace(string(token)) {
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
