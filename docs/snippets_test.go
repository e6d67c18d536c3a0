package docs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
)

const module = "github.com/serf-sbr/serf-sbr/"

// imports are what blocks of Go may use without saying so.
var imports = map[string]string{
	"context": "context", "errors": "errors", "slog": "log/slog", "synctest": "testing/synctest", "testing": "testing", "time": "time",
	"serf":    "github.com/hashicorp/serf/serf",
	"downing": module + "downing", "memnet": module + "downing/memnet", "serfnet": module + "downing/memnet/serfnet",
	"lease": module + "lease", "kubernetes": module + "lease/kubernetes", "memory": module + "lease/memory",
	"lock": module + "lease/lock", "leasetest": module + "lease/leasetest",
	"simulator": module + "simulator",
	"singleton": module + "singleton", "sharding": module + "sharding", "fence": module + "lease/fence", "http": "net/http", "path": "path",
}

// Every block of Go compiles: as declarations, or as the body of a function that has a context, a
// configuration and a store.
func TestGoCompiles(t *testing.T) {
	overlay := make(map[string]string)
	folder := t.TempDir()
	here, err := filepath.Abs(".")
	require.NoError(t, err)
	for i, b := range blocks(t, "go") {
		code := b.text
		if !regexp.MustCompile(`(?m)^func `).MatchString(code) {
			code = "func _(ctx context.Context, conf *serf.Config, store lease.Store) {\nvar err error\n_, _, _, _ = err, ctx, conf, store\n" + code + "}\n"
		}
		name := fmt.Sprintf("snippet%d.go", i)
		overlay[filepath.Join(here, fmt.Sprintf("snippet%d", i), name)] = filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte("package snippet\n\n"+header(code)+"\n"+code), 0o600))
	}
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "overlay.json"), list, 0o600))
	args := []string{"build", "-overlay", filepath.Join(folder, "overlay.json")}
	for path := range overlay {
		args = append(args, filepath.Dir(path))
	}
	out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// header imports what the code uses.
func header(code string) string {
	var h strings.Builder
	for name, path := range imports {
		if regexp.MustCompile(`\b` + name + `\.`).MatchString(code) {
			fmt.Fprintf(&h, "import %q\n", path)
		}
	}
	return h.String()
}

// Every block of YAML that names a system is a valid configuration.
func TestYAMLIsValid(t *testing.T) {
	for _, b := range blocks(t, "yaml") {
		if strings.HasPrefix(b.text, "system:") {
			_, err := downing.ParseConfig(b.page.path, []byte(b.text))
			require.NoError(t, err)
		}
	}
}
