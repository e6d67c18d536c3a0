package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/test/buildcache"
)

// tree is the module as the suite sees it: as it is, or with files laid over it.
type tree struct {
	root, module string
	// overlay is the file for -overlay; empty: the tree as it is.
	overlay string
	// scratch is a folder for what is built from this tree.
	scratch string
}

// openTree finds the product's module, from the folder of the harness or from any other inside the
// repository.
func openTree(ctx context.Context, scratch string) (*tree, error) {
	root, err := buildcache.Root()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-m")
	cmd.Dir = root
	module, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m in %s: %w", root, err)
	}
	return &tree{root: root, module: strings.TrimSpace(string(module)), scratch: scratch}, nil
}

// with returns the tree with the files of the mutant laid over it; what is written goes into scratch.
func (t *tree) with(files map[string][]byte, scratch string) (*tree, error) {
	over := struct{ Replace map[string]string }{make(map[string]string)}
	for name, text := range files {
		to := filepath.Join(scratch, strings.ReplaceAll(filepath.ToSlash(name), "/", "_"))
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return nil, err
		}
		over.Replace[filepath.Join(t.root, name)] = to
	}
	data, err := json.Marshal(over)
	if err != nil {
		return nil, err
	}
	c := *t
	c.scratch, c.overlay = scratch, filepath.Join(scratch, "overlay.json")
	return &c, os.WriteFile(c.overlay, data, 0o600)
}

// run runs a command in the tree. ok says that it exited with status 0; err, that it never ran, or was
// stopped.
func (t *tree) run(ctx context.Context, name string, args ...string) (
	stdout, stderr []byte, ok bool, err error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.root, &out, &errs
	cmd.WaitDelay = 10 * time.Second
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case errors.As(err, &exit):
		err = nil
	}
	return out.Bytes(), errs.Bytes(), err == nil && cmd.ProcessState.Success(), err
}

// goRun runs the go command with the overlay: args[0] is its verb.
func (t *tree) goRun(ctx context.Context, args ...string) (stdout, stderr []byte, ok bool, err error) {
	// One package at a time: there is a worker for each core already.
	verb := []string{args[0], "-p", "1"}
	if t.overlay != "" {
		verb = append(verb, "-overlay", t.overlay)
	}
	return t.run(ctx, "go", slices.Concat(verb, args[1:])...)
}

// compiles reports whether the packages do.
func (t *tree) compiles(ctx context.Context, packages ...string) error {
	_, stderr, ok, err := t.goRun(ctx, slices.Concat([]string{"build"}, packages)...)
	if err == nil && !ok {
		err = fmt.Errorf("it does not compile:\n%s", tail(stderr))
	}
	return err
}
