package buildcache

import (
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

const mainModule = "module github.com/serf-sbr/serf-sbr"

// Root returns the folder of the repository, found by walking up from the working folder: tests run in the folder of their package. An
// error is returned outside of it.
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("buildcache: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("buildcache: %w", err)
		}
		if first, _, _ := strings.Cut(string(mod), "\n"); strings.TrimSpace(first) == mainModule {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("buildcache: %s is not inside the serf-sbr repository; run from there", start)
		}
	}
}

// Toolchain is what the go command builds with.
type Toolchain struct {
	GOVERSION string
	GOOS      string
	GOARCH    string
}

// String is the part of a key that names it.
func (t Toolchain) String() string { return t.GOVERSION + "_" + t.GOOS + "-" + t.GOARCH }

// ReadToolchain asks the go command what it builds the module in that folder with.
func ReadToolchain(ctx context.Context, module string) (Toolchain, error) {
	var t Toolchain
	cmd := exec.CommandContext(ctx, "go", "env", "-json", "GOVERSION", "GOOS", "GOARCH")
	cmd.Dir = module
	cmd.Env = buildEnv()
	raw, err := cmd.Output()
	if err != nil {
		return t, fmt.Errorf("buildcache: go env: %w; the go command must be on PATH", err)
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return t, fmt.Errorf("buildcache: go env: %w", err)
	}
	return t, nil
}

// Digest is short and depends on all of parts, and on how [GoBuild] builds.
func Digest(parts ...[]byte) string {
	h := sha256.New()
	settings := []byte(strings.Join(slices.Concat(buildFlags, buildSettings), " "))
	for _, part := range append(slices.Clone(parts), settings) {
		fmt.Fprintf(h, "%d\n", len(part))
		h.Write(part)
	}
	return fmt.Sprintf("%.6x", h.Sum(nil))
}
