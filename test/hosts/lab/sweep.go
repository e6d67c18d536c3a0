//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Swept is what Sweep found and removed.
type Swept struct {
	// Namespaces are names of network namespaces, Processes how many were killed in them, Folders those of
	// logs that were not touched for an hour.
	Namespaces []string
	Processes  int
	Folders    []string
}

// Sweep removes what is left of labs whose process is dead, and nothing else: neither what a living process
// has made, nor what no lab has. Labs remove themselves; it is for those whose watchman was killed, too.
func Sweep(ctx context.Context) (Swept, error) {
	var done Swept
	all, err := listNamespaces(prefix)
	if err != nil {
		return done, err
	}
	var errs []error
	for _, name := range all {
		if o, ok := parseOwner(name); !ok || o.alive() {
			continue
		}
		pids, err := pidsIn(ctx, name)
		if err == nil {
			err = removeNamespace(ctx, name)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("lab: %s: %w", name, err))
			continue
		}
		done.Namespaces, done.Processes = append(done.Namespaces, name), done.Processes+len(pids)
	}
	swept, err := sweepFolders(os.TempDir())
	done.Folders = swept
	return done, errors.Join(append(errs, err)...)
}

// leftoverAge leaves time to read the logs of a run that failed.
const leftoverAge = time.Hour

// sweepFolders removes the logs of labs whose process is dead.
func sweepFolders(parent string) (removed []string, err error) {
	folders, _ := filepath.Glob(filepath.Join(parent, prefix+"-*"))
	var errs []error
	for _, path := range folders {
		o, ok := parseOwner(filepath.Base(path))
		info, err := os.Stat(path)
		if !ok || o.alive() || err != nil || time.Since(info.ModTime()) < leftoverAge {
			continue
		}
		errs = append(errs, os.RemoveAll(path))
		removed = append(removed, path)
	}
	return removed, errors.Join(errs...)
}
