package kubernetes

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/serf-sbr/serf-sbr/lease"
)

// API is the kind of object that keeps the lease. All parties of one lease must name the same.
type API string

// The kinds. The zero API is Native.
const (
	// Native is the Lease of coordination.k8s.io/v1 that every API server has. The best choice among serf-sbr
	// parties.
	Native API = "native"
	// Akka is the custom resource Lease of akka.io/v1, shared with Akka services. See the package
	// documentation for what it cannot do.
	Akka API = "akka"
	// Pekko is the custom resource Lease of pekko.apache.org/v1, shared with Pekko services. Otherwise it is
	// like Akka.
	Pekko API = "pekko"
)

// Group returns the API group that a Role has to name, empty for an unknown API.
func (a API) Group() string {
	switch a {
	case "", Native:
		return "coordination.k8s.io"
	case Akka:
		return "akka.io"
	case Pekko:
		return "pekko.apache.org"
	default:
		return ""
	}
}

// Custom reports whether the API is a custom resource, which has to be installed first.
func (a API) Custom() bool { return a == Akka || a == Pekko }

func (a API) validate() error {
	if a.Group() == "" {
		return fmt.Errorf("%q is no API: use native, akka or pekko", string(a))
	}
	return nil
}

// object is a stored lease of either kind.
type object interface {
	runtime.Object
	metav1.Object
}

// draft is a record on its way to the server.
type draft struct {
	// annotation is the value of Annotation.
	annotation string
	// spec holds every field that is ours. A nil clears one; fields that are not listed stay as they are.
	spec map[string]any
}

// codec turns records into objects and back.
type codec interface {
	empty() object
	// encode also gets the mark of the state that is replaced, empty if unknown.
	encode(r lease.Record, mark string) (draft, error)
	// decode reads a stored object, of any writer.
	decode(o object) (lease.Record, error)
	// mark is what a version says of an object beside uid and resourceVersion.
	mark(o object) string
}

// dialect is all that the APIs differ in.
type dialect struct {
	codec
	version schema.GroupVersion
	// plain is what kubectl calls the resource, rights what a Role must allow.
	plain, rights string
	// posts: a lease is created by POST, because a PUT on an absent custom resource is a 404.
	posts bool
}

func (a API) dialect() dialect {
	version := schema.GroupVersion{Group: a.Group(), Version: "v1"}
	if !a.Custom() {
		return dialect{codec: native{}, version: version, plain: "lease",
			rights: "get, watch, create, update and patch"}
	}
	return dialect{
		codec: custom{}, version: version, plain: resource + "." + version.Group, posts: true,
		rights: "get, watch and patch (and create, unless the lease was made beforehand)",
	}
}

// scheme knows this one kind: the generated clients know all of Kubernetes, at twice the size.
func (d dialect) scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(d.version.WithKind(kindName), d.empty())
	metav1.AddToGroupVersion(s, d.version)
	metav1.AddToGroupVersion(s, metav1.SchemeGroupVersion)
	return s
}
