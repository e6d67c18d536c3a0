package manifest_test

import (
	"log"
	"os"

	"github.com/serf-sbr/serf-sbr/lease/kubernetes/manifest"
)

func ExampleWrite() {
	o := manifest.DefaultOptions()
	o.System, o.Namespace, o.ServiceAccount = "payments", "team-a", "payments"
	o.Create, o.PreMade = true, false
	if err := manifest.Write(os.Stdout, o); err != nil {
		log.Fatal(err)
	}
	// Output:
	// ---
	// # What a member may do with the lease payments-sbr, and nothing else: read it, hear of its changes, change it.
	// # It may create the lease as well, by PUT, which takes create and update. (A POST cannot be limited to one name.)
	// apiVersion: rbac.authorization.k8s.io/v1
	// kind: Role
	// metadata:
	//   name: payments-sbr-lease
	//   namespace: team-a
	// rules:
	//   - apiGroups: [coordination.k8s.io]
	//     resources: [leases]
	//     resourceNames: [payments-sbr]
	//     verbs: [get, watch, patch, create, update]
	// ---
	// # Gives these rights to the service account payments, which the members run as.
	// apiVersion: rbac.authorization.k8s.io/v1
	// kind: RoleBinding
	// metadata:
	//   name: payments-sbr-lease
	//   namespace: team-a
	// subjects:
	//   - kind: ServiceAccount
	//     name: payments
	//     namespace: team-a
	// roleRef:
	//   apiGroup: rbac.authorization.k8s.io
	//   kind: Role
	//   name: payments-sbr-lease
}
