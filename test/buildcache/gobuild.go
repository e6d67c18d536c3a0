package buildcache

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"
)

var (
	buildFlags = []string{"-trimpath", "-ldflags", "-s -w"}
	// buildSettings shut out what the caller has set for the main module: a workspace, -mod=vendor, -race. Without cgo the
	// programs need no C compiler and run anywhere.
	buildSettings = []string{"GOWORK=off", "GOFLAGS=-mod=readonly", "CGO_ENABLED=0"}
)

// GoBuild is the build of one program from a Go module of the repository.
type GoBuild struct {
	// Owner begins each line of progress, Label says there what is built.
	Owner, Label string
	// Module is the folder of the module, Package what is built in it.
	Module, Package string
	// Output is the file that the program becomes.
	Output string
}

// Run builds, and tells the progress on out. The error has one line: the last of the compiler's.
func (b GoBuild) Run(ctx context.Context, out io.Writer) error {
	var log bytes.Buffer
	args := append([]string{"build"}, buildFlags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "-o", b.Output, b.Package)...)
	cmd.Dir, cmd.Env = b.Module, buildEnv()
	cmd.Stdout, cmd.Stderr = &log, &log
	// An interrupted go command stops its compilers; a killed one leaves them running.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second

	p := startProgress(out, b.Owner, b.Label)
	err := cmd.Run()
	p.finish(err)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: build %s: %w; run it again, what is compiled is kept", b.Owner, b.Label, ctx.Err())
	}
	return fmt.Errorf("%s: build %s: %w: %s; see all of it with: cd %s && go build -o /dev/null %s",
		b.Owner, b.Label, err, lastLine(log.String()), path.Join("test", filepath.Base(b.Module)), b.Package)
}

func buildEnv() []string { return append(os.Environ(), buildSettings...) }

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
