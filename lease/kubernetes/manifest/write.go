package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Write prints the manifests as YAML: one document each, in the order in which they are to be made, with a comment on top of each.
// The error is that of Validate, or w's.
func Write(w io.Writer, o Options) error {
	documents, err := build(o)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	for _, d := range documents {
		text.WriteString("---\n")
		for line := range strings.SplitSeq(d.comment, "\n") {
			text.WriteString("# " + line + "\n")
		}
		encoder := yaml.NewEncoder(&text)
		encoder.SetIndent(2)
		if err := encoder.Encode(d.content); err != nil {
			return fmt.Errorf("manifest: %w", err)
		}
	}
	_, err = w.Write(text.Bytes())
	return err
}

// WriteJSON prints the manifests as one JSON object, a List that kubectl takes as well. It has no comments.
func WriteJSON(w io.Writer, o Options) error {
	documents, err := build(o)
	if err != nil {
		return err
	}
	list := struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Items      []any  `json:"items"`
	}{APIVersion: "v1", Kind: "List"}
	for _, d := range documents {
		list.Items = append(list.Items, d.content)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(list)
}
