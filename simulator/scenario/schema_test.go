package scenario

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

var updateSchema = flag.Bool("update", false, "write scenario.schema.json anew")

// The file is what the types and the documentation of the keys make of it.
func TestSchema_IsCurrent(t *testing.T) {
	made := makeSchema(t)
	if *updateSchema {
		require.NoError(t, os.WriteFile("scenario.schema.json", made, 0o644))
		return
	}
	require.True(t, bytes.Equal(made, Schema()), "run: go test ./simulator/scenario -run TestSchema_IsCurrent -update")
}

// Every key has a description, so that an editor can show it.
func TestSchema_DescribesEveryKey(t *testing.T) {
	var keys int
	var look func(v any)
	look = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				look(e)
			}
		case map[string]any:
			if props, ok := v["properties"].(map[string]any); ok && v["additionalProperties"] == false {
				for key, p := range props {
					keys++
					require.Regexp(t, `^\S.{9,}[.]$`, p.(map[string]any)["description"], key)
				}
			}
			for _, e := range v {
				look(e)
			}
		}
	}
	var doc any
	require.NoError(t, json.Unmarshal(Schema(), &doc))
	look(doc)
	require.Greater(t, keys, 70)
}
