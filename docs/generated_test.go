package docs_test

//go:generate go test . -run ^TestConfigurationPageIsCurrent$ -update

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/config"
)

// configuration.md is made of the keys that the program knows: nothing in it can be older.
func TestConfigurationPageIsCurrent(t *testing.T) {
	const path = "configuration.md"
	page := configurationPage()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(page), 0o644))
	}
	is, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, page == string(is), "%s is not what the program says: run make generate", path)
}

func configurationPage() string {
	var b strings.Builder
	b.WriteString("<!-- made by make generate from internal/config/keys.yaml -->\n\n# Configuration keys\n\n" +
		"Every key of `sbr.yaml`. How to write one, and what to choose: [configure](configure.md). " +
		"`sbr config init` prints a file with the same texts, `sbr schema config` the JSON Schema for an editor.\n")
	row := func(k config.Key) {
		def := ""
		if k.Default != "" {
			def = "`" + k.Default + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.Path, def, strings.NewReplacer("<", "&lt;", "|", "\\|").Replace(k.Text))
	}
	const head = "\n| key | default | meaning |\n|---|---|---|\n"
	b.WriteString(head)
	for _, k := range config.Keys() {
		if k.Block && !strings.Contains(k.Path, ".") {
			fmt.Fprintf(&b, "\n## %s\n\n%s\n%s", k.Path, k.Text, head)
		} else {
			row(k)
		}
	}
	return b.String()
}
