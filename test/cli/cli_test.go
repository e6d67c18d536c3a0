// Package cli runs the program against servers, as scripts.
package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.M(m).Run()) }

// TestScript_Kubernetes runs the scripts under testdata/script against a real API server. Each has a
// namespace of its own, and KUBECONFIG is that of the service account "member" in it, which has no rights at
// first.
func TestScript_Kubernetes(t *testing.T) {
	cluster := kubetest.Shared(t)
	bin := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-o", bin+"/",
		"./cmd/sbr").CombinedOutput()
	require.NoError(t, err, string(out))
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			namespace := cluster.Namespace(t)
			kubeconfig, err := cluster.AccountKubeconfig(context.Background(), namespace, "member")
			if err != nil {
				return err
			}
			env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("NAMESPACE", namespace)
			env.Setenv("KUBECONFIG", kubeconfig)
			env.Setenv("ADMIN", cluster.AdminKubeconfig())
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"eventually": eventually,
			"apply":      func(ts *testscript.TestScript, _ bool, args []string) { apply(ts, cluster, args) },
		},
	})
}

// eventually CODE COMMAND… runs the program until its exit status is CODE: rights reach the authoriser by a
// watch. The output is in the file "out".
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || neg {
		ts.Fatalf("usage: eventually code arguments…")
	}
	var code int
	var out bytes.Buffer
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); {
		out.Reset()
		code = statusOf(ts.Exec("sbr", args[1:]...))
		out.WriteString(ts.ReadFile("stdout") + ts.ReadFile("stderr"))
		if fmt.Sprint(code) == args[0] {
			ts.Check(os.WriteFile(ts.MkAbs("out"), out.Bytes(), 0o600))
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Fatalf("exit status %d, want %s\n%s", code, args[0], out.String())
}

func statusOf(err error) int {
	if err == nil {
		return 0
	}
	var exit interface{ ExitCode() int }
	if e, ok := err.(interface{ ExitCode() int }); ok {
		exit = e
		return exit.ExitCode()
	}
	return -1
}

// apply FILE makes the objects of a List, as administrator; what exists is patched.
func apply(ts *testscript.TestScript, cluster *kubetest.Cluster, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: apply file")
	}
	var list struct{ Items []map[string]any }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &list))
	if len(list.Items) == 0 {
		ts.Fatalf("nothing to apply")
	}
	for _, item := range list.Items {
		meta := item["metadata"].(map[string]any)
		path := "/apis/" + item["apiVersion"].(string)
		if ns, ok := meta["namespace"].(string); ok {
			path += "/namespaces/" + ns
		}
		path += "/" + strings.ToLower(item["kind"].(string)) + "s"
		made := func(method, path string) int {
			code, _, err := cluster.Do(context.Background(), method, path, item)
			ts.Check(err)
			return code
		}
		code := 0
		for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(
			50 * time.Millisecond) {
			// a kind that was defined just now takes a moment
			if code = made(http.MethodPost, path); code != http.StatusNotFound {
				break
			}
		}
		if code == http.StatusConflict {
			code = made(http.MethodPatch, path+"/"+meta["name"].(string))
		}
		if code/100 != 2 {
			ts.Fatalf("%s: %d", path, code)
		}
	}
}
