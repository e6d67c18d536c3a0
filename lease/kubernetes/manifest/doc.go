// Package manifest prints what a cluster needs so that its members may use one lease in Kubernetes: the
// least-privilege Role, its RoleBinding to a service account, the empty lease made beforehand and, for a
// custom resource, its CustomResourceDefinition.
//
//	o := manifest.DefaultOptions()
//	o.System, o.Namespace, o.ServiceAccount = "payments", "team-a", "payments"
//	err := manifest.Write(os.Stdout, o) // kubectl apply -f -
//
// The Role names the one lease (resourceNames) and, beside it, what helps: its namespace, and Events. Members
// may get, watch and patch it. By default they may create it as well (Options.Create), so that a deleted
// lease is made again; without that right an operator has to.
//
// For a custom resource the server judges the right to create by the name in the request's path, but stores
// the object under the name in its body. So a holder of that right can, with a request made by hand, create
// leases of other names too. For a native lease, which is created by PUT, the right is as narrow as it looks.
//
// # Guarantees
//
//   - The same Options give the same text, byte by byte.
//   - Applying the text again does not touch a lease that is held. The one exception says so in its comment:
//     a pre-made custom resource without our CustomResourceDefinition (Options.CRD false) has to spell its
//     fields out, and must only be created.
package manifest
