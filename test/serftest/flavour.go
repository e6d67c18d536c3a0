package serftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/serf-sbr/serf-sbr/test/buildcache"
)

// Flavour is one of the stock agents. The zero value is Module.
type Flavour int

// The flavours.
const (
	// Module is the agent of the Go module, in the version that test/serfagent requires.
	Module Flavour = iota
	// Debian is the agent of Debian's package, version 0.9.4 in bookworm.
	Debian
)

func (f Flavour) String() string {
	if f == Debian {
		return "debian"
	}
	return "module"
}

// ErrNoApt is returned by Ensure where Debian's package cannot be had because apt-get or dpkg-deb is missing.
var ErrNoApt = errors.New("serftest: Debian's serf needs apt-get and dpkg-deb; run on Debian or Ubuntu, or use the flavour of the module")

// Ensure returns the path of the program, and makes or fetches it first when it is missing: some ten seconds,
// once. Progress is told on out. The working folder must be inside the repository.
func Ensure(ctx context.Context, f Flavour, out io.Writer) (string, error) {
	root, err := buildcache.Root()
	if err != nil {
		return "", err
	}
	if f == Module {
		return buildcache.Serf.Ensure(ctx, out)
	}
	dir, err := buildcache.Ensure(ctx, buildcache.Folder(root, "serf"), "debian", func(dir string) error {
		fmt.Fprintln(out, "fetching Debian's package serf")
		return fetchDebian(ctx, dir)
	})
	return filepath.Join(dir, filepath.FromSlash(debianProgram)), err
}

const debianProgram = "usr/bin/serf"

// fetchDebian unpacks the package into dir; nothing is installed.
func fetchDebian(ctx context.Context, dir string) error {
	for _, tool := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return ErrNoApt
		}
	}
	download := exec.CommandContext(ctx, "apt-get", "download", "serf")
	download.Dir = dir
	if err := buildcache.Run(download); err != nil {
		return fmt.Errorf("serftest: %w; run apt-get update first", err)
	}
	packages, err := filepath.Glob(filepath.Join(dir, "serf_*.deb"))
	if err != nil || len(packages) != 1 {
		return fmt.Errorf("serftest: apt-get download serf: %d packages fetched, one expected", len(packages))
	}
	if err := buildcache.Run(exec.CommandContext(ctx, "dpkg-deb", "-x", packages[0], dir)); err != nil {
		return fmt.Errorf("serftest: %w", err)
	}
	if _, err := os.Stat(filepath.Join(dir, debianProgram)); err != nil {
		return fmt.Errorf("serftest: Debian's package serf: %w", err)
	}
	return nil
}

// EachFlavour runs a test with each flavour, as far as the machine has it; with -short with none.
func EachFlavour(t *testing.T, test func(t *testing.T, f Flavour)) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a stock Serf agent, which is built first: run without -short")
	}
	for _, f := range []Flavour{Module, Debian} {
		t.Run(f.String(), func(t *testing.T) {
			if _, err := Ensure(t.Context(), f, t.Output()); f == Debian && err != nil {
				t.Skip(err) // the machine has no Debian packages
			}
			test(t, f)
		})
	}
}
