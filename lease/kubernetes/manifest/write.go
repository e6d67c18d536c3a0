package manifest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"

	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
)

//go:embed manifests.yaml
var manifests string

// manifest is what is printed. In a namespace in a Role its own one alone is meant; a native lease has an
// empty spec, and so has a custom resource where our definition has defaults.
var manifest = template.Must(template.New("manifests.yaml").Funcs(template.FuncMap{
	"text":  text,
	"title": func(api kubernetes.API) string { return strings.ToUpper(string(api[:1])) + string(api[1:]) },
}).Parse(manifests))

// text is a text in YAML: a name may look like a number.
func text(s string) (string, error) {
	b, err := yaml.Marshal(s)
	return strings.TrimSpace(string(b)), err
}

// Write prints the manifests as YAML: one document each, in the order in which they are to be made, with a
// comment on top of each. The error is that of Validate, or w's.
func Write(w io.Writer, o Options) error {
	documents, err := render(o)
	if err != nil {
		return err
	}
	_, err = w.Write(documents)
	return err
}

func render(o Options) ([]byte, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	name, err := o.leaseName()
	if err != nil {
		return nil, err
	}
	var documents bytes.Buffer
	if err := manifest.Execute(&documents, struct {
		Options
		Lease string
	}{o, name}); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return documents.Bytes(), nil
}

// WriteJSON prints the manifests as one JSON object, a List that kubectl takes as well. It has no comments.
func WriteJSON(w io.Writer, o Options) error {
	documents, err := render(o)
	if err != nil {
		return err
	}
	list := struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Items      []any  `json:"items"`
	}{APIVersion: "v1", Kind: "List"}
	for from := yaml.NewDecoder(bytes.NewReader(documents)); ; {
		var item any
		if err := from.Decode(&item); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("manifest: %w", err)
		}
		list.Items = append(list.Items, item)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(list)
}
