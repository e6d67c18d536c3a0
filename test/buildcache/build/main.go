// Command build makes programs that tests need, so that no test has to wait for them, and prints where they
// are:
//
//	go run -C test ./buildcache/build etcd kube-apiserver
//
// A run that finds them up to date takes well under a second.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"

	"github.com/serf-sbr/serf-sbr/test/buildcache"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := build(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func build(ctx context.Context, names []string) error {
	all := buildcache.Programs()
	for _, name := range names {
		if name == "postgres" { // which is fetched
			path, err := buildcache.NewestPostgres.Ensure(ctx, os.Stderr)
			if err != nil {
				return err
			}
			fmt.Println(path)
			continue
		}
		i := slices.IndexFunc(all, func(p buildcache.Program) bool { return p.String() == name })
		if i < 0 {
			return fmt.Errorf("build: there is no program %q; there are %v", name, all)
		}
		path, err := all[i].Ensure(ctx, os.Stderr)
		if err != nil {
			return err
		}
		fmt.Println(path)
	}
	return nil
}
