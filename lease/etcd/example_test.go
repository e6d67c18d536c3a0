package etcd_test

import (
	"context"
	"log"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/etcd"
)

// A lock between the programs beside one etcd cluster.
func Example() {
	client, err := clientv3.New(clientv3.Config{
		Endpoints:         []string{"https://etcd-1:2379", "https://etcd-2:2379", "https://etcd-3:2379"},
		DialKeepAliveTime: 5 * time.Second, DialKeepAliveTimeout: 5 * time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	store, err := etcd.New(client, "/serf-sbr/backup")
	if err != nil {
		log.Fatal(err)
	}
	l, err := lease.New(store, "worker-1@1700000000", lease.DefaultSettings(), lease.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	grant, err := l.Acquire(context.Background(), lease.Proposal{})
	if err != nil {
		log.Print(err)
		return
	}
	log.Print("working under token ", grant.Token())
}

// Two members of one cluster find out whether they use one store.
func ExampleStore() {
	store, err := etcd.New(&clientv3.Client{}, "/serf-sbr/payments-sbr") // a client that is connected
	if err != nil {
		log.Fatal(err)
	}
	log.Print(store.String())
	identity, err := store.Identity(context.Background())
	log.Print(identity, err)
}
