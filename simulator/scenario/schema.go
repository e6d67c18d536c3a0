package scenario

import (
	_ "embed"
	"slices"
)

//go:embed scenario.schema.json
var schema []byte

// Schema is the JSON Schema (draft 2020-12) of scenario files, for editors. It is made from the types of this
// package, and a test keeps it current. It accepts whatever Parse accepts. It cannot know what needs the rest
// of the file: whether a member that is named exists, whether a step is within run-for, whether a node is in
// two groups, whether settings contradict each other.
func Schema() []byte { return slices.Clone(schema) }
