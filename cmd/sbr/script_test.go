package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

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
