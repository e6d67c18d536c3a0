package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a file needs that no run shows truly yet is refused, and the file waits: each is refused for the reason that the list gives. One
// that is refused no more belongs to the library.
func TestWaiting_EveryFileIsRefusedForItsReason(t *testing.T) {
	folder := filepath.Join("..", "waiting")
	page, err := os.ReadFile(filepath.Join(folder, "README.md"))
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	listed := make(map[string]string) // the key that is refused
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) == 5 && strings.Contains(cells[1], ".yaml") {
			listed[strings.Trim(cells[1], " `")] = strings.Trim(cells[2], " `")
		}
	}
	require.Len(t, listed, len(files), "README.md lists each file of the folder")
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		key := listed[filepath.Base(file)]
		require.NotEmpty(t, key, "%s is not in the list", file)
		_, err = Parse(file, data)
		require.Error(t, err, "%s can be played: move it to the library", file)
		for line := range strings.SplitSeq(err.Error(), "\n") {
			require.Contains(t, line, ": "+key, file)
		}
	}
}
