package binaries

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	mainModule       = "module github.com/serf-sbr/serf-sbr"
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
	toolchain   toolchain
}

type toolchain struct {
	GOVERSION string
	GOOS      string
	GOARCH    string
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
	settings := []byte(strings.Join(slices.Concat(buildFlags, buildSettings), " "))
	src := source{module: module, sum: digest(mod, sum, settings)}
	if src.kubeVersion, err = requiredVersion(mod, kubeModule); err != nil {
		return source{}, err
	}
	if src.etcdVersion, err = requiredVersion(mod, etcdPackage); err != nil {
		return source{}, err
	}
	src.toolchain, err = readToolchain(ctx, module)
	return src, err
}

// key is the name of the folder with the finished programs.
func (s source) key() string {
	return fmt.Sprintf("kubernetes-%s_etcd-%s_%s_%s-%s_%s", s.kubeVersion, s.etcdVersion,
		s.toolchain.GOVERSION, s.toolchain.GOOS, s.toolchain.GOARCH, s.sum)
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

func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d\n", len(part))
		h.Write(part)
	}
	return fmt.Sprintf("%.6x", h.Sum(nil))
}

func readToolchain(ctx context.Context, module string) (toolchain, error) {
	var t toolchain
	cmd := exec.CommandContext(ctx, "go", "env", "-json", "GOVERSION", "GOOS", "GOARCH")
	cmd.Dir = module
	cmd.Env = buildEnv()
	raw, err := cmd.Output()
	if err != nil {
		return t, fmt.Errorf("binaries: go env: %w; the go command must be on PATH", err)
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return t, fmt.Errorf("binaries: go env: %w", err)
	}
	return t, nil
}

// repositoryRoot walks up from the working folder: tests run in the folder of their package.
func repositoryRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("binaries: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("binaries: %w", err)
		}
		if first, _, _ := strings.Cut(string(mod), "\n"); strings.TrimSpace(first) == mainModule {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("binaries: %s is not inside the serf-sbr repository; run from there", start)
		}
	}
}
