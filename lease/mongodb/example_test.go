package mongodb_test

import (
	"context"
	"log"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/mongodb"
)

// A lock between the programs beside one replica set.
func Example() {
	ctx := context.Background()
	client, err := mongo.Connect(mongodb.Options("mongodb://mongo-1,mongo-2,mongo-3/?replicaSet=rs0",
		5*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Disconnect(ctx) }()
	store, err := mongodb.New(client.Database("payments").Collection("sbr_leases"), "backup")
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Preflight(ctx); err != nil {
		log.Print(err) // each problem on a line of its own
	}
	l, err := lease.New(store, "worker-1@1700000000", lease.DefaultSettings(), lease.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	grant, err := l.Acquire(ctx, lease.Proposal{})
	if err != nil {
		log.Print(err)
		return
	}
	log.Print("working under token ", grant.Token())
}
