//go:build linux

package cluster

import (
	"context"
	"os"
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
	return path, buildcache.Build(ctx, root, "", "./cmd/sbr", path)
}

// BuildLoad builds the ledger (serve) and what writes to it (write and shardhost) into dir.
func BuildLoad(ctx context.Context, dir string) error {
	root, err := buildcache.Root()
	if err != nil {
		return err
	}
	for _, pkg := range []string{
		"github.com/serf-sbr/serf-sbr/internal/ledger/serve", "github.com/serf-sbr/serf-sbr/internal/ledger/write", "./hosts/shardhost",
	} {
		if err := buildcache.Build(ctx, filepath.Join(root, "test"), "", pkg, filepath.Join(dir, filepath.Base(pkg))); err != nil {
			return err
		}
	}
	return nil
}
