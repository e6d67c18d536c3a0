package scenario

//go:generate go test . -run ^TestSchema_IsCurrent$ -update

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/config"
)

var updateSchema = flag.Bool("update", false, "write the schemas anew")

// The files are what the types and the documentation of the keys make of it.
func TestSchema_IsCurrent(t *testing.T) {
	made, madeConfig := makeSchema(t), makeConfigSchema(t)
	if *updateSchema {
		require.NoError(t, os.WriteFile("scenario.schema.json", made, 0o644))
		require.NoError(t, os.WriteFile("../../internal/config/sbr.schema.json", madeConfig, 0o644))
		return
	}
	require.True(t, bytes.Equal(made, Schema()), "run: make generate")
	require.True(t, bytes.Equal(madeConfig, config.Schema()), "run: make generate")
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
