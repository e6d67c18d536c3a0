package docs_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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
		require.NoError(t, os.WriteFile(filepath.Join(folder, name),
			[]byte("package snippet\n\n"+header(code)+"\n"+code), 0o600))
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

// The packages whose users come for the lease alone: everything they can call is shown by an example that
// compiles, and runs where it needs no server.
func TestEntryPointsAreShownByExamples(t *testing.T) {
	for _, pkg := range []string{"lease", "lease/lock", "lease/leasetest", "lease/memory", "lease/file",
		"lease/kubernetes", "lease/kubernetes/manifest"} {
		t.Run(pkg, func(t *testing.T) {
			public, shown := make(map[string]bool), make(map[string]bool)
			paths, err := filepath.Glob(filepath.Join("..", pkg, "*.go"))
			require.NoError(t, err)
			for _, path := range paths {
				file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
				require.NoError(t, err)
				for _, d := range file.Decls {
					f, ok := d.(*ast.FuncDecl)
					switch {
					case !ok:
					case !strings.HasSuffix(path, "_test.go"):
						if f.Name.IsExported() && exportedReceiver(f) && !plumbing[f.Name.Name] {
							public[f.Name.Name] = true
						}
					case strings.HasPrefix(f.Name.Name, "Example"):
						ast.Inspect(f.Body, func(n ast.Node) bool {
							if s, ok := n.(*ast.SelectorExpr); ok {
								shown[s.Sel.Name] = true
							}
							return true
						})
					}
				}
			}
			var missing []string
			for _, name := range slices.Sorted(maps.Keys(public)) {
				if !shown[name] {
					missing = append(missing, name)
				}
			}
			require.Empty(t, missing, "no example of %s shows these", pkg)
		})
	}
}

// plumbing is called by fmt, errors, or the package that an interface belongs to.
var plumbing = map[string]bool{
	"String": true, "Error": true, "Unwrap": true, "Timeout": true, "Window": true, "Location": true, "Identity": true, "DryRun": true, "Announce": true,
	"NewTimer": true, "Now": true, "Postponed": true,
	"MarshalText": true, "UnmarshalText": true, "MarshalJSON": true, "UnmarshalJSON": true,
}

func exportedReceiver(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	receiver := f.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	name, ok := receiver.(*ast.Ident)
	return ok && name.IsExported()
}
