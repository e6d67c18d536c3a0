package kubernetes_test

import (
	"context"
	"log"

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
	log.Print(err)
}
