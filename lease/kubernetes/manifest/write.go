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
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
)

// Options say what to print. Start from DefaultOptions and set System or Name.
type Options struct {
	// System is the name of the cluster. It is used where Name is empty: the lease is "<system>-sbr" then.
	System string
	// Namespace of everything but the CustomResourceDefinition. Required.
	Namespace string
	// Name is the lease's name as it is configured (lease-name); it is sanitised as the members do.
	Name string
	// ServiceAccount is the account that the members run as, in the same Namespace. Required.
	ServiceAccount string
	// API is the kind of object that keeps the lease. Empty: kubernetes.Native.
	API kubernetes.API
	// Create lets the members create the lease, so that a deleted lease is made again.
	Create bool
	// PreMade prints the empty lease, to be made by the user that applies the manifests.
	PreMade bool
	// CRD prints the CustomResourceDefinition, which takes a cluster administrator. Only for a custom
	// resource.
	CRD bool
}

// DefaultOptions returns Options for a native lease that is printed and may be made again, used by the
// account "default" of the namespace "default". They lack a System or a Name.
func DefaultOptions() Options {
	return Options{Namespace: "default", ServiceAccount: "default", API: kubernetes.Native, Create: true,
		PreMade: true}
}

// Validate returns all problems at once, one per line.
func (o Options) Validate() error {
	var problems []error
	report := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("manifest: "+format, args...))
	}
	if o.System == "" && o.Name == "" {
		report("neither a system nor a lease-name is set: one of them names the lease")
	} else if _, err := o.leaseName(); err != nil {
		report("%w", err)
	}
	if wrong := validation.IsDNS1123Label(o.Namespace); len(wrong) > 0 {
		report("%q cannot be a namespace: %s", o.Namespace, strings.Join(wrong, "; "))
	}
	if wrong := validation.IsDNS1123Subdomain(o.ServiceAccount); len(wrong) > 0 {
		report("%q cannot be a service account: %s", o.ServiceAccount, strings.Join(wrong, "; "))
	}
	switch {
	case o.API.Group() == "":
		report("%q is no API: use native, akka or pekko", string(o.API))
	case o.CRD && !o.API.Custom():
		report("a native lease needs no CustomResourceDefinition: leave it out, or choose the API akka or pekko")
	}
	return errors.Join(problems...)
}

func (o Options) leaseName() (string, error) { return kubernetes.LeaseName(o.System, o.Name) }

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
