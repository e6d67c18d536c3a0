package buildcache

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Program is a program that a module of the repository pins.
type Program struct {
	name, module, path string
	tags               string
	source             string // a file of the module that is the program, where it is none of a dependency
}

// The programs, by the tests that need them: those of leases, of Serf's agent, of MongoDB, and of deploy/.
var (
	Etcd      = Program{name: "etcd", module: "test/kube", path: "go.etcd.io/etcd/server/v3"}
	APIServer = Program{name: "kube-apiserver", module: "test/kube",
		path: "k8s.io/kubernetes/cmd/kube-apiserver"}
	Serf = Program{name: "serf", module: "test/serfagent", path: "github.com/hashicorp/serf/cmd/serf"}
	// FerretDB speaks MongoDB's wire protocol over SQLite: MongoDB itself is no Go module.
	FerretDB  = Program{name: "ferretdb", module: "test/ferretdb", path: ".", source: "main.go"}
	Kustomize = Program{name: "kustomize", module: "test/deploy/tools",
		path: "sigs.k8s.io/kustomize/kustomize/v5"}
	// Promtool is built without service discovery, which no rule needs and which takes most of its time to
	// build.
	Promtool = Program{name: "promtool", module: "test/deploy/tools",
		path: "github.com/prometheus/prometheus/cmd/promtool", tags: "remove_all_sd"}
	Goreleaser = Program{name: "goreleaser", module: "test/deploy/tools/goreleaser",
		path: "github.com/goreleaser/goreleaser/v2"}
	Syft = Program{name: "syft", module: "test/deploy/tools/syft", path: "github.com/anchore/syft/cmd/syft"}
)

// Programs are all of them.
func Programs() []Program {
	return []Program{Etcd, APIServer, Serf, FerretDB, Kustomize, Promtool, Goreleaser, Syft}
}

// String is the name of the program.
func (p Program) String() string { return p.name }

// Ensure returns the path of the program and builds it first when it is missing or out of date: minutes for
// the large ones. It says so on out.
func (p Program) Ensure(ctx context.Context, out io.Writer) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	key, err := p.key(ctx, filepath.Join(root, p.module))
	if err != nil {
		return "", err
	}
	dir, err := Ensure(ctx, Folder(root, filepath.Join("programs", p.name)), key, func(dir string) error {
		fmt.Fprintf(out, "building %s, once: minutes, the first time\n", p.name)
		return Build(ctx, filepath.Join(root, p.module), p.tags, p.path, filepath.Join(dir, p.name))
	})
	return filepath.Join(dir, p.name), err
}

// key names everything that the build depends on.
func (p Program) key(ctx context.Context, module string) (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, p.path, p.tags, buildFlags, buildSettings)
	for _, name := range []string{"go.mod", "go.sum", p.source} {
		if name == "" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return "", fmt.Errorf("buildcache: %w; restore it from git", err)
		}
		fmt.Fprintf(hash, "%d\n%s", len(data), data)
	}
	cmd := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOOS", "GOARCH")
	cmd.Dir, cmd.Env = module, append(os.Environ(), buildSettings...)
	toolchain, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("buildcache: go env: %w; the go command must be on PATH", err)
	}
	return fmt.Sprintf("%s_%.6x", strings.Join(strings.Fields(string(toolchain)), "_"), hash.Sum(nil)), nil
}

var (
	buildFlags = []string{"-trimpath", "-ldflags", "-s -w"}
	// buildSettings shut out what the caller has set for the main module: a workspace, -mod=vendor, -race.
	// Without cgo the programs need no C compiler and run anywhere.
	buildSettings = []string{"GOWORK=off", "GOFLAGS=-mod=readonly", "CGO_ENABLED=0"}
)

// Build builds a package of the module in a folder into output. The error has one line: the last of the
// compiler's.
func Build(ctx context.Context, module, tags, pkg, output string) error {
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"build"}, buildFlags...), "-tags", tags, "-o",
		output, pkg)...)
	cmd.Dir, cmd.Env = module, append(os.Environ(), buildSettings...)
	// An interrupted go command stops its compilers; a killed one leaves them running.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	said, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("buildcache: build %s: %w; run it again, what is compiled is kept", pkg, ctx.Err())
	default:
		lines := strings.Split(string(bytes.TrimSpace(said)), "\n")
		return fmt.Errorf("buildcache: build %s: %w: %s; see all of it with: go -C %s build -o /dev/null %s", pkg,
			err, lines[len(lines)-1], module, pkg)
	}
}
