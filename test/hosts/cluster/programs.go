//go:build linux

package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/serf-sbr/serf-sbr/test/buildcache"
)

// BinaryEnv names the program under test where that is not to be built here: that of a package, for instance.
const BinaryEnv = "SBR_BINARY"

// BuildSBR builds `sbr` of this repository into dir, unless it is given, and returns its path.
func BuildSBR(ctx context.Context, dir string) (string, error) {
	if path := os.Getenv(BinaryEnv); path != "" {
		return path, nil
	}
	root, err := buildcache.Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "sbr")
	return path, build(ctx, root, path, "./cmd/sbr")
}

// BuildLoad builds the ledger (serve) and what writes to it (write and shardhost) into dir.
func BuildLoad(ctx context.Context, dir string) error {
	root, err := buildcache.Root()
	if err != nil {
		return err
	}
	return build(ctx, filepath.Join(root, "test"), dir+string(filepath.Separator),
		"github.com/serf-sbr/serf-sbr/internal/ledger/serve", "github.com/serf-sbr/serf-sbr/internal/ledger/write", "./hosts/shardhost")
}

// build takes from the go command's cache what its tests have compiled: no flags that change that.
func build(ctx context.Context, module, to string, packages ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-o", to}, packages...)...)
	cmd.Dir, cmd.Env = module, append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %v: %w: %s", packages, err, said)
	}
	return nil
}
