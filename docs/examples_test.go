package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The packages whose users come for the lease alone: everything they can call is shown by an example that
// compiles, and runs where it needs no server.
func TestEntryPointsAreShownByExamples(t *testing.T) {
	for _, pkg := range []string{"lease", "lease/lock", "lease/leasetest", "lease/memory", "lease/file", "lease/kubernetes", "lease/kubernetes/manifest"} {
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
