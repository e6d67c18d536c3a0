package scenario

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// library parses the scenario files beside this package.
func library(t *testing.T) map[string]*Scenario {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "scenarios", "*.yaml"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 20)
	all := make(map[string]*Scenario)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		first, _, _ := bytes.Cut(data, []byte("\n"))
		require.Regexp(t, `^# \S.*\.$`, string(first), "%s: the first line says what it proves", file)
		s, err := Parse(file, data)
		require.NoError(t, err)
		all[strings.TrimSuffix(filepath.Base(file), ".yaml")] = s
	}
	return all
}

func TestLibrary_EveryScenarioPasses(t *testing.T) {
	for name, s := range library(t) {
		for seed := uint64(1); seed <= 5; seed++ {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				t.Parallel()
				if r := Judge(s, seed); !r.Passed {
					t.Error(strings.Join(r.Failures, "\n"))
				}
			})
		}
	}
}
