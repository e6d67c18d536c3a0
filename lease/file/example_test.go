package file_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/file"
)

func ExampleNew() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "sbr")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	cfg := file.Config{}
	cfg.Path = filepath.Join(dir, "payments.lease")
	store, err := file.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := store.Preflight(ctx); err != nil {
		log.Print(err) // every problem on a line of its own
	}

	l, err := lease.New(store, "node-1@1700000000", lease.DefaultSettings(), lease.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	grant, err := l.Acquire(ctx, lease.Proposal{})
	fmt.Println(grant.Token(), err)
	fmt.Println(grant.Release(ctx))
	// Output:
	// 1 <nil>
	// <nil>
}

func ExampleFactory() {
	dir, err := os.MkdirTemp("", "sbr")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	store, err := file.Factory(nil)(context.Background(), lease.Spec{ // or lease.Open by file.Key, without a logger
		Name: "payments-sbr",
		// From a configuration file: node.Decode of a yaml.Node. A directory may hold the records of several
		// leases.
		Decode: func(into any) error { return json.Unmarshal(fmt.Appendf(nil, `{"path": %q}`, dir), into) },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer store.(*file.Store).Close()
	fmt.Println(filepath.Base(store.(*file.Store).String()))
	// Output:
	// payments-sbr.lease
}

// What is said of a configuration that cannot work.
func ExampleConfig_Validate() {
	fmt.Println(file.Config{}.Validate())
	// Output: file: the path of the record is empty: set lease.file.path
}

func ExampleStore_Watch() {
	dir, err := os.MkdirTemp("", "sbr")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	cfg := file.Config{}
	cfg.Path = filepath.Join(dir, "payments.lease")
	store, err := file.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := store.Write(ctx, lease.Record{Holder: "node-1", Token: 1}, ""); err != nil {
		log.Fatal(err)
	}
	now, err := store.Read(ctx)
	fmt.Println(now.Record.Token, err)
	err = store.Watch(ctx, func(s lease.Snapshot) {
		fmt.Println(s.Record.Holder, s.Record.Token)
		cancel()
	})
	fmt.Println(err)
	// Output:
	// 1 <nil>
	// node-1 1
	// context canceled
}
