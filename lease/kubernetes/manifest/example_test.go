package manifest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes/manifest"
)

func ExampleWrite() {
	o := manifest.DefaultOptions()
	o.System, o.Namespace, o.ServiceAccount = "payments", "team-a", "payments"
	o.PreMade = false
	if err := manifest.Write(os.Stdout, o); err != nil {
		log.Fatal(err)
	}
	// Output:
	// ---
	// # What a member may do: read the lease payments-sbr, hear of its changes, change it, write Events (kubectl
	// # describe lease shows them), and nothing else but read which namespace this is: members whose leases are in
	// # different clusters or namespaces find out by its uid.
	// # It may create the lease as well: one that was deleted is made again. That is a PUT, which takes create and update;
	// # the right to a POST could not be limited to one name.
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
	//   - apiGroups: [""]
	//     resources: [namespaces]
	//     verbs: [get]
	//   - apiGroups: [""]
	//     resources: [events]
	//     verbs: [create]
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

// The lease shared with Akka services: the custom resource too, in one JSON object for a program to read.
func ExampleWriteJSON() {
	o := manifest.DefaultOptions()
	o.Name, o.Namespace, o.ServiceAccount = "payments-batch", "team-a", "payments"
	o.API, o.CRD = kubernetes.Akka, true
	if err := o.Validate(); err != nil {
		log.Fatal(err) // every problem on a line of its own
	}
	var list struct{ Items []struct{ Kind string } }
	var text bytes.Buffer
	if err := manifest.WriteJSON(&text, o); err != nil {
		log.Fatal(err)
	}
	if err := json.Unmarshal(text.Bytes(), &list); err != nil {
		log.Fatal(err)
	}
	for _, item := range list.Items {
		fmt.Println(item.Kind)
	}
	// Output:
	// CustomResourceDefinition
	// Role
	// RoleBinding
	// Lease
}
