package deploy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/serf-sbr/serf-sbr/test/buildcache"
)

// CacheEnv names the environment variable that moves the cache out of the repository.
const CacheEnv = "SBR_DEPLOY_CACHE"

const owner = "deploy"

// Tool is one of the programs.
type Tool struct {
	name, module, path string
	tags               string
}

// The programs.
var (
	Kustomize = Tool{name: "kustomize", module: ".", path: "sigs.k8s.io/kustomize/kustomize/v5"}
	// Promtool is built without service discovery, which no rule needs and which takes most of its time to build.
	Promtool   = Tool{name: "promtool", module: ".", path: "github.com/prometheus/prometheus/cmd/promtool", tags: "remove_all_sd"}
	Goreleaser = Tool{name: "goreleaser", module: "goreleaser", path: "github.com/goreleaser/goreleaser/v2"}
	Syft       = Tool{name: "syft", module: "syft", path: "github.com/anchore/syft/cmd/syft"}
)

// Tools are all of them.
func Tools() []Tool { return []Tool{Kustomize, Promtool, Goreleaser, Syft} }

// String is the name of the program.
func (t Tool) String() string { return t.name }

// Ensure returns the path of the program and builds it first when it is missing or out of date. Progress is told on out. An error is
// returned outside of the repository, and when the build fails or ctx ends.
func (t Tool) Ensure(ctx context.Context, out io.Writer) (string, error) {
	root, err := buildcache.Root()
	if err != nil {
		return "", err
	}
	module := filepath.Join(root, "test", "deploy", "tools", t.module)
	key, err := t.key(ctx, module)
	if err != nil {
		return "", err
	}
	cache := buildcache.Cache{Dir: buildcache.Folder(root, CacheEnv, "deploy"), Env: CacheEnv, Owner: owner, What: t.name}
	dir, err := cache.Ensure(ctx, key, out, func(dir string) error {
		fmt.Fprintf(out, "%s: building %s (minutes, the first time)\n", owner, t.name)
		return t.build(ctx, module, filepath.Join(dir, t.name))
	})
	return filepath.Join(dir, t.name), err
}

// key names everything that the build depends on.
func (t Tool) key(ctx context.Context, module string) (string, error) {
	parts := [][]byte{[]byte(t.tags)}
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return "", fmt.Errorf("deploy: %w; restore test/deploy/tools from git", err)
		}
		parts = append(parts, data)
	}
	toolchain, err := buildcache.ReadToolchain(ctx, module)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s_%s_%s", t.name, toolchain, buildcache.Digest(parts...)), nil
}

func (t Tool) build(ctx context.Context, module, output string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", t.tags, "-ldflags", "-s -w", "-o", output, t.path)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly", "CGO_ENABLED=0", "GOOS=", "GOARCH=")
	// An interrupted go command stops its compilers; a killed one leaves them running.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	said, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	lines := strings.Split(string(bytes.TrimSpace(said)), "\n")
	return fmt.Errorf("deploy: build %s: %w: %s", t.name, err, lines[len(lines)-1])
}

// buildTimeout bounds a build within a test.
const buildTimeout = 15 * time.Minute

// Path returns where the program is, and builds it first when it is missing. It skips the test under -short.
func (t Tool) Path(tb testing.TB) string {
	tb.Helper()
	if testing.Short() {
		tb.Skipf("needs %s: run without -short", t.name)
	}
	ctx, cancel := context.WithTimeout(tb.Context(), buildTimeout)
	defer cancel()
	path, err := t.Ensure(ctx, tb.Output())
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// Run runs the program in dir and returns what it printed, on both streams.
func (t Tool) Run(tb testing.TB, dir string, args ...string) (string, error) {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), t.Path(tb), args...)
	cmd.Dir = dir
	said, err := cmd.CombinedOutput()
	return string(said), err
}
