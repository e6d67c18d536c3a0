package kubetest

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

var shared struct {
	mu      sync.Mutex
	cluster *Cluster
	err     error
}

// Shared returns the one cluster of this test process and starts it on first use. Tests that use it keep
// apart by namespace and leave its processes alone; those that kill or pause take their own from New. It
// skips the test under -short.
func Shared(tb testing.TB) *Cluster {
	tb.Helper()
	skipIfShort(tb)
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.cluster == nil && shared.err == nil {
		// Not the context of the test: the cluster outlives it.
		shared.cluster, shared.err = Start(context.Background(), Options{})
	}
	// A start that failed once is not tried again: each of a hundred tests would wait for the same failure.
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.cluster
}

// New returns a cluster for this test alone, which stops with the test. It skips the test under -short.
func New(tb testing.TB) *Cluster {
	tb.Helper()
	skipIfShort(tb)
	cluster, err := Start(tb.Context(), Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return cluster
}

// Namespace creates a namespace of its own for this test and returns its name, so that tests that share a
// cluster, or one test that runs several times, do not meet.
func (c *Cluster) Namespace(tb testing.TB) string {
	tb.Helper()
	name := "test-" + strings.ToLower(rand.Text())
	if err := c.CreateNamespace(tb.Context(), name); err != nil {
		tb.Fatal(err)
	}
	return name
}

func skipIfShort(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("needs a kube-apiserver: run without -short")
	}
}

// Runner is what TestMain runs: *testing.M, or something that wraps it.
type Runner interface{ Run() int }

// M wraps the Runner of TestMain so that the shared cluster stops after the tests. Without it the cluster
// still dies with the process, but its folder stays until a later test clears it.
func M(m Runner) Runner { return stopAfter{m} }

type stopAfter struct{ tests Runner }

func (s stopAfter) Run() int {
	code := s.tests.Run()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.cluster == nil {
		return code
	}
	if err := shared.cluster.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}
