// Command build makes the kube-apiserver and etcd that the Kubernetes tests run against, so that no test has to wait for it:
//
//	go run -C test ./kubetest/build
//
// It prints where they are. A run that finds them up to date takes well under a second.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/serf-sbr/serf-sbr/test/kubetest/binaries"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	set, err := binaries.Ensure(ctx, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(set.Etcd)
	fmt.Println(set.APIServer)
}
