package binaries

import (
	"context"
	"io"
	"path/filepath"

	"github.com/serf-sbr/serf-sbr/test/buildcache"
)

// CacheEnv names the environment variable that moves the cache out of the repository, for example to share it between clones.
const CacheEnv = "SBR_KUBE_CACHE"

const owner = "kubetest"

// Set is where the two programs are.
type Set struct {
	APIServer string
	Etcd      string
}

// Ensure returns the programs and builds them first when they are missing or out of date: about 4 minutes from nothing on two
// cores. It reports progress on out and waits for a build that another process has under way. The working folder must be inside
// the repository.
func Ensure(ctx context.Context, out io.Writer) (Set, error) {
	root, err := buildcache.Root()
	if err != nil {
		return Set{}, err
	}
	src, err := readSource(ctx, filepath.Join(root, "test", "kube"))
	if err != nil {
		return Set{}, err
	}
	return src.ensure(ctx, buildcache.Folder(root, CacheEnv, "kube"), out)
}

func (s source) ensure(ctx context.Context, folder string, out io.Writer) (Set, error) {
	cache := buildcache.Cache{Dir: folder, Env: CacheEnv, Owner: owner, What: "kube-apiserver and etcd"}
	dir, err := cache.Ensure(ctx, s.key(), out, func(dir string) error { return s.build(ctx, setIn(dir), out) })
	if err != nil {
		return Set{}, err
	}
	return setIn(dir), nil
}

func (s source) build(ctx context.Context, set Set, out io.Writer) error {
	etcd := buildcache.GoBuild{
		Owner: owner, Label: "[1/2] etcd " + s.etcdVersion, Module: s.module, Package: etcdPackage, Output: set.Etcd,
	}
	if err := etcd.Run(ctx, out); err != nil {
		return err
	}
	server := buildcache.GoBuild{
		Owner: owner, Label: "[2/2] kube-apiserver " + s.kubeVersion + " (minutes, the first time)",
		Module: s.module, Package: apiServerPackage, Output: set.APIServer,
	}
	return server.Run(ctx, out)
}

func setIn(dir string) Set {
	return Set{APIServer: filepath.Join(dir, "kube-apiserver"), Etcd: filepath.Join(dir, "etcd")}
}
