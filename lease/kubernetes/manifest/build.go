package manifest

import (
	"fmt"
	"strings"

	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
)

const (
	rbacGroup   = "rbac.authorization.k8s.io"
	rbacVersion = rbacGroup + "/v1"
	roleSuffix  = "-lease"
)

// document is one object and what it is for.
type document struct {
	comment string
	content any
}

// build returns the objects in the order in which they are to be made.
func build(o Options) ([]document, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	name, err := o.leaseName()
	if err != nil {
		return nil, err
	}
	var all []document
	if o.CRD {
		all = append(all, o.definition())
	}
	all = append(all, o.role(name), o.binding(name))
	if o.PreMade {
		all = append(all, o.lease(name))
	}
	return all, nil
}

func (o Options) role(name string) document {
	verbs := []string{"get", "watch", "patch"}
	comment := fmt.Sprintf("What a member may do: read the lease %s, hear of its changes, change it, write Events (kubectl\n"+
		"describe lease shows them), and nothing else but read which namespace this is: members whose leases are in\n"+
		"different clusters or namespaces find out by its uid.", name)
	switch {
	case !o.Create:
		comment += "\nIt may not create the lease: that has to be made beforehand."
	case o.API.Custom():
		verbs = append(verbs, "create")
		comment += "\nIt may create the lease as well: one that was deleted is made again. The server judges that by the name in the request's path only: for a right that is as" +
			"\nnarrow as it looks, leave create out (--create=false)."
	default:
		verbs = append(verbs, "create", "update")
		comment += "\nIt may create the lease as well: one that was deleted is made again. That is a PUT, which takes create and update;" +
			"\nthe right to a POST could not be limited to one name."
	}
	return document{comment, role{
		head: head{rbacVersion, "Role", metadata{name + roleSuffix, o.Namespace}},
		Rules: []rule{{
			APIGroups: []string{o.API.Group()}, Resources: []string{"leases"}, ResourceNames: []string{name}, Verbs: verbs,
		}, {
			APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}, // in a Role that is its own one alone
		}, {
			APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create"},
		}},
	}}
}

func (o Options) binding(name string) document {
	comment := fmt.Sprintf("Gives these rights to the service account %s, which the members run as.", o.ServiceAccount)
	return document{comment, roleBinding{
		head:     head{rbacVersion, "RoleBinding", metadata{name + roleSuffix, o.Namespace}},
		Subjects: []subject{{"ServiceAccount", o.ServiceAccount, o.Namespace}},
		RoleRef:  roleRef{rbacGroup, "Role", name + roleSuffix},
	}}
}

func (o Options) lease(name string) document {
	l := leaseObject{head: head{o.API.Group() + "/v1", "Lease", metadata{name, o.Namespace}}}
	comment := "The lease itself, free. Applying this again does not touch a lease that is held."
	if o.API.Custom() && !o.CRD {
		var owner string
		var at int64
		l.Spec.Owner, l.Spec.Time = &owner, &at
		comment = "The lease itself, free. Only ever create it (kubectl create -f -): applying this again, by hand or by a tool that keeps the\n" +
			"cluster equal to a repository, takes the lease from its holder."
	}
	return document{comment, l}
}

func (o Options) definition() document {
	group := o.API.Group()
	spec := property{Type: "object", Properties: map[string]property{
		"owner":   {Type: "string", Description: "Who holds the lease; empty: nobody.", Default: ""},
		"time":    {Type: "integer", Format: "int64", Description: "The owner's last sign of life, in milliseconds since 1970 by its wall clock.", Default: 0},
		"version": {Type: "string", Description: "Not used."},
	}}
	comment := fmt.Sprintf("The resource that keeps leases shared with %s services. It is made once for the whole Kubernetes cluster, and takes an\n"+
		"administrator. One that was installed for those services does as well, and need not be replaced.", title(o.API))
	return document{comment, definition{
		head: head{"apiextensions.k8s.io/v1", "CustomResourceDefinition", metadata{Name: "leases." + group}},
		Spec: definitionSpec{
			Group: group,
			Scope: "Namespaced",
			Names: names{Kind: "Lease", ListKind: "LeaseList", Singular: "lease", Plural: "leases"},
			Versions: []version{{
				Name: "v1", Served: true, Storage: true,
				Schema: schema{property{Type: "object", Properties: map[string]property{"spec": spec}}},
				Columns: []columns{
					{"Owner", "string", "Who holds the lease", ".spec.owner"},
					{"Time", "integer", "The owner's last sign of life, in milliseconds since 1970", ".spec.time"},
					{"Age", "date", "", ".metadata.creationTimestamp"},
				},
			}},
		},
	}}
}

func title(api kubernetes.API) string { return strings.ToUpper(string(api[:1])) + string(api[1:]) }
