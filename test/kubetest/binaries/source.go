package binaries

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/serf-sbr/serf-sbr/test/buildcache"
)

const (
	kubeModule       = "k8s.io/kubernetes"
	etcdPackage      = "go.etcd.io/etcd/server/v3"
	apiServerPackage = "k8s.io/kubernetes/cmd/kube-apiserver"
)

// source is everything that decides what the programs are.
type source struct {
	module      string
	kubeVersion string
	etcdVersion string
	sum         string
	toolchain   buildcache.Toolchain
}

func readSource(ctx context.Context, module string) (source, error) {
	mod, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		return source{}, fmt.Errorf("binaries: %w; restore test/kube from git", err)
	}
	sum, err := os.ReadFile(filepath.Join(module, "go.sum"))
	if err != nil {
		return source{}, fmt.Errorf("binaries: %w; restore test/kube from git", err)
	}
	src := source{module: module, sum: buildcache.Digest(mod, sum)}
	if src.kubeVersion, err = requiredVersion(mod, kubeModule); err != nil {
		return source{}, err
	}
	if src.etcdVersion, err = requiredVersion(mod, etcdPackage); err != nil {
		return source{}, err
	}
	src.toolchain, err = buildcache.ReadToolchain(ctx, module)
	return src, err
}

// key is the name of the folder with the finished programs.
func (s source) key() string {
	return fmt.Sprintf("kubernetes-%s_etcd-%s_%s_%s", s.kubeVersion, s.etcdVersion, s.toolchain, s.sum)
}

func requiredVersion(mod []byte, module string) (string, error) {
	for line := range bytes.Lines(mod) {
		fields := strings.Fields(string(line))
		if len(fields) >= 2 && fields[0] == module && strings.HasPrefix(fields[1], "v") {
			return fields[1], nil
		}
	}
	return "", fmt.Errorf("binaries: test/kube/go.mod: no version of %s; require one there", module)
}
