package binaries

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

var (
	buildFlags = []string{"-trimpath", "-ldflags", "-s -w"}
	// buildSettings shut out what the caller has set for the main module: a workspace, -mod=vendor, -race. Without cgo the
	// programs need no C compiler and run anywhere.
	buildSettings = []string{"GOWORK=off", "GOFLAGS=-mod=readonly", "CGO_ENABLED=0"}
)

// step is the build of one program.
type step struct {
	label  string
	pkg    string
	output string
}

func (s step) run(ctx context.Context, module string, out io.Writer) error {
	var log bytes.Buffer
	args := append([]string{"build"}, buildFlags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "-o", s.output, s.pkg)...)
	cmd.Dir, cmd.Env = module, buildEnv()
	cmd.Stdout, cmd.Stderr = &log, &log
	// An interrupted go command stops its compilers; a killed one leaves them running.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second

	p := startProgress(out, s.label)
	err := cmd.Run()
	p.finish(err)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("binaries: build %s: %w; run it again, what is compiled is kept", s.label, ctx.Err())
	}
	return fmt.Errorf("binaries: build %s: %w: %s; see all of it with: cd test/kube && go build -o /dev/null %s", s.label, err, lastLine(log.String()), s.pkg)
}

func buildEnv() []string { return append(os.Environ(), buildSettings...) }

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
