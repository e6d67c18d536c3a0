package scenario

//go:generate go test . -run ^TestSchema_IsCurrent$ -update

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/config"
)

var updateSchema = flag.Bool("update", false, "write the schemas anew")

// The files are what the types and the documentation of the keys make of it.
func TestSchema_IsCurrent(t *testing.T) {
	made, madeConfig := makeSchema(t), makeConfigSchema(t)
	const path = "../../docs/scenario.md"
	if *updateSchema {
		require.NoError(t, os.WriteFile(path, []byte(makePage()), 0o644))
		require.NoError(t, os.WriteFile("scenario.schema.json", made, 0o644))
		require.NoError(t, os.WriteFile("../../internal/config/sbr.schema.json", madeConfig, 0o644))
		return
	}
	require.True(t, bytes.Equal(made, Schema()), "run: make generate")
	require.True(t, bytes.Equal(madeConfig, config.Schema()), "run: make generate")
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, makePage() == string(page), "%s is not what the program knows: run make generate", path)
}

// makePage is the page of the keys of a scenario file.
func makePage() string {
	var b strings.Builder
	b.WriteString("<!-- made by make generate from the keys of package simulator/scenario -->\n\n# Scenario keys\n\n" +
		"Every key of a scenario file; an example of each action is in [the simulator](simulator.md#the-file). `cluster.split-brain-resolver` and " +
		"`cluster.lease` have the keys of [sbr.yaml](configuration.md). `sbr schema scenario` prints the JSON Schema.\n\n| key | meaning |\n|---|---|\n")
	for _, key := range slices.Sorted(maps.Keys(scenarioTexts)) {
		text := strings.NewReplacer("<", "&lt;", "|", "\\|", "docs/singletons.md", "[singletons](singletons.md)").Replace(scenarioTexts[key])
		fmt.Fprintf(&b, "| `%s` | %s |\n", key, text)
	}
	return b.String()
}
