package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rubbish costs no memory to speak of: it is refused by its size, or by its number of values, before anything
// is built from it.
func TestSimulate_JunkCostsLittle(t *testing.T) {
	for name, text := range map[string]string{
		"50 MB":             strings.Repeat("# nothing\n", 5_000_000),
		"50 MB on one line": "name: " + strings.Repeat("x", 50_000_000),
		"100,000 steps":     "run-for: 60s\nsteps:\n" + strings.Repeat("- {at: 1s, heal: true}\n", 100_000),
		"short steps":       "run-for: 60s\nsteps:\n" + strings.Repeat("- {}\n", 100_000),
		"deep":              strings.Repeat("[", 1_000_000),
		"deep maps":         strings.Repeat("{a: ", 250_000),
		"indented":          strings.Repeat("- ", 500_000),
		"commas":            "[" + strings.Repeat(",", 1_000_000),
		"aliases":           "a: &a [" + strings.Repeat("x, ", 1000) + "]\nb: &b [" + strings.Repeat("*a, ", 1000) + "]\nc: [" + strings.Repeat("*b, ", 1000) + "]\n",
		"anchors":           strings.Repeat("&a ", 300_000),
		"quotes":            strings.Repeat(`"`, 1_000_000),
		"questions":         strings.Repeat("? ", 500_000),
		"zeros":             strings.Repeat("\x00", 1_000_000),
		"one huge key":      strings.Repeat("k", 1_000_000) + ": 1\n",
		"one huge name":     "run-for: 60s\nsteps: [{at: 1s, crash: " + strings.Repeat("n", 900_000) + "}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "junk.yaml")
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			var out, errOut bytes.Buffer
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			status := run([]string{"simulate", path}, streams{in: strings.NewReader(""), out: &out, err: &errOut})
			runtime.ReadMemStats(&after)
			require.Equal(t, exitBadInput, status, errOut.String())
			require.Empty(t, out.String())
			require.Equal(t, 1, strings.Count(errOut.String(), "\n"), errOut.String())
			require.Contains(t, errOut.String(), "junk.yaml")
			require.Less(t, errOut.Len(), 500)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<20), "bytes taken in all")
		})
	}
}
