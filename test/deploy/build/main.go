// Command build makes the programs that check deploy/ and pack a release, so that no test has to wait for them:
//
//	go -C test run ./deploy/build
//	go -C test run ./deploy/build goreleaser syft
//
// It prints where they are. A run that finds them up to date takes well under a second.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"

	"github.com/serf-sbr/serf-sbr/test/deploy"
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
	known := make(map[string]bool)
	for _, tool := range deploy.Tools() {
		known[tool.String()] = true
		if len(names) > 0 && !slices.Contains(names, tool.String()) {
			continue
		}
		path, err := tool.Ensure(ctx, os.Stderr)
		if err != nil {
			return err
		}
		fmt.Println(path)
	}
	for _, name := range names {
		if !known[name] {
			return fmt.Errorf("deploy: there is no tool %q", name)
		}
	}
	return nil
}
