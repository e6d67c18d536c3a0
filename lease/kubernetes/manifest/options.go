package manifest

import (
	"errors"
	"fmt"
	"strings"

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
	return Options{Namespace: "default", ServiceAccount: "default", API: kubernetes.Native, Create: true, PreMade: true}
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
