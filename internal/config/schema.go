package config

import (
	_ "embed"
	"slices"
)

//go:embed sbr.schema.json
var schema []byte

// Schema is the JSON Schema (draft 2020-12) of sbr.yaml, for editors. It is made from the types of this
// package, by the generator of the schema of scenario files, which have the same blocks; a test there keeps
// it current. It accepts whatever Parse accepts.
func Schema() []byte { return slices.Clone(schema) }
