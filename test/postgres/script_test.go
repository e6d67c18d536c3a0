package postgres_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

// TestScript runs the program over a server without a table. OWNER may do everything, MEMBER may log in once
// it exists.
func TestScript(t *testing.T) {
	s := newServer(t)
	bin := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-o", bin+"/", "./cmd/sbr").CombinedOutput()
	require.NoError(t, err, string(out))
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(os.PathListSeparator)+s.Programs+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("OWNER", s.URL("owner", "postgres"))
			env.Setenv("MEMBER", s.URL("sbr", "postgres"))
			return os.WriteFile(filepath.Join(env.WorkDir, "url"), []byte(s.URL("sbr", "postgres")+"\n"), 0o600)
		},
	})
}
