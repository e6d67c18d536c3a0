//go:build unix

package fence

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A process that is killed anywhere leaves a file that holds what it admitted last, or the next token, and
// nobody's lock.
func TestFile_KilledAnywhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "orders.fence")
	exe, err := os.Executable()
	require.NoError(t, err)
	var said uint64
	for round := range 12 {
		cmd := exec.CommandContext(t.Context(), exe)
		cmd.Env = append(os.Environ(), countVariable+"="+path)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for i := 0; lines.Scan(); i++ {
			token, err := Parse(lines.Text())
			require.NoError(t, err)
			require.Greater(t, token, said)
			said = token
			if i == round { // what it says until the signal arrives is read as well
				require.NoError(t, cmd.Process.Kill())
			}
		}
		require.Error(t, cmd.Wait(), "killed")

		file, f := openFence(t, path)
		require.GreaterOrEqual(t, f.Newest(), said)
		require.LessOrEqual(t, f.Newest(), said+1)
		said = f.Newest()
		require.NoError(t, file.Close())
	}
}
