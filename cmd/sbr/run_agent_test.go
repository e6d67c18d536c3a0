package main

import (
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// waitagent FILE PATH TEXT waits until an agent, whose address the file holds, answers with the text at the
// path.
func waitagent(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 || neg {
		ts.Fatalf("usage: waitagent file path text")
	}
	url := "http://" + strings.TrimSpace(ts.ReadFile(args[0])) + args[1]
	var last string
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		resp, err := http.Get(url)
		if err != nil {
			last = err.Error()
			continue
		}
		text, err := io.ReadAll(resp.Body)
		ts.Check(err)
		_ = resp.Body.Close() // it was read to its end
		if last = string(text); strings.Contains(last, args[2]) {
			return
		}
	}
	ts.Fatalf("%s does not say %q, but %s", url, args[2], last)
}
