package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
)

func ExampleNew() {
	ctx := context.Background()
	cfg := kubernetes.DefaultConfig()
	cfg.Name = kubernetes.Name("payments")
	store, err := kubernetes.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := store.Preflight(ctx); err != nil {
		log.Print(err) // every problem on a line of its own
	}
	err = store.Watch(ctx, func(s lease.Snapshot) { log.Print(s.Record.Holder, s.Record.Verdict) })
	log.Print(err, "; last answer: ", store.LastAnswer())
}

// A lock that Go and Akka services compete for. All of them need the same times and the same name.
func ExampleNew_sharedWithAkka() {
	ctx := context.Background()
	cfg := kubernetes.DefaultConfig()
	cfg.Name, cfg.API = "payments-batch", kubernetes.Akka
	if err := cfg.Validate(); err != nil {
		log.Fatal(err) // every problem on a line of its own
	}
	store, err := kubernetes.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := store.Preflight(ctx); errors.Is(err, kubernetes.ErrNotInstalled) {
		log.Fatal(err) // says which CustomResourceDefinition is missing
	}
	l, err := lease.New(store, "go-1", lease.DefaultSettings(), lease.Options{})
	if err != nil {
		log.Fatal(err) // for example: times that leave no room before the others take over
	}
	defer l.Close()
	_, err = l.Acquire(ctx, lease.Proposal{})
	log.Print(store.API(), err)
}

// A program that talks to Kubernetes anyway brings its own client configuration. Read and Write are the raw
// contract of a store; for a lock use lease.New.
func ExampleNewForConfig() {
	ctx := context.Background()
	restConfig, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	cfg := kubernetes.DefaultConfig()
	cfg.Namespace, cfg.Name = "team-a", kubernetes.Name("payments")
	store, err := kubernetes.NewForConfig(restConfig, cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	present, err := store.Read(ctx)
	if err != nil {
		log.Fatal(err)
	}
	next := lease.Record{Holder: "me", Token: present.Record.Token + 1, Nonce: "1", TTL: 2 * time.Minute}
	if _, err := store.Write(ctx, next, present.Version); errors.Is(err, lease.ErrConflict) {
		log.Print("somebody was faster")
	}
}

func ExampleLeaseName() {
	for _, configured := range []string{"", "My_Lease"} {
		name, err := kubernetes.LeaseName("payments", configured)
		fmt.Println(name, err)
	}
	// Output:
	// payments-sbr <nil>
	// my-lease <nil>
}

func ExampleAPI() {
	for _, api := range []kubernetes.API{kubernetes.Native, kubernetes.Akka, kubernetes.Pekko} {
		fmt.Println(api, api.Group(), api.Custom())
	}
	// Output:
	// native coordination.k8s.io false
	// akka akka.io true
	// pekko pekko.apache.org true
}

// What `sbr lease doctor` prints.
func ExampleDiagnose() {
	cfg := kubernetes.DefaultConfig()
	cfg.Kubeconfig, cfg.Name = "/no/such/kubeconfig", kubernetes.Name("payments")
	d := kubernetes.Diagnose(context.Background(), cfg)
	fmt.Println("works:", d.OK())
	for _, f := range d.Findings[:2] {
		fmt.Printf("%s %s: %s\n", f.Status, f.Check, f.Detail)
	}
	// Output:
	// works: false
	// failed configuration: kubernetes: stat /no/such/kubeconfig: no such file or directory
	// skipped api server: not looked at, because of the failure above
}

// The package registers itself, without a logger; a program that wants its messages opens by a factory of its
// own.
func ExampleFactory() {
	fmt.Println(slices.Contains(lease.Implementations(), kubernetes.Key))
	_, err := kubernetes.Factory(slog.Default())(context.Background(), lease.Spec{Name: "__"})
	fmt.Println(err)
	// Output:
	// true
	// lease-name: kubernetes: nothing of the name "__" is allowed in the name of a lease: it needs at least one letter a-z or digit
}
