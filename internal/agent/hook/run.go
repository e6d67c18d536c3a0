package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/patience"
)

// killAfter is how long a command that was told to end may take, and how long its output is read after its end.
const killAfter = time.Second

// run runs the command of an event, if there is one, and logs how it went.
func (r *Runner) run(ctx context.Context, e event, f Facts) {
	path := r.paths[e]
	if path == "" {
		return
	}
	ctx, cancel := patience.WithTimeout(ctx, r.opt.Timeout, errTimeout)
	defer cancel()
	log := f.log(r.log).With("hook", "on-"+string(e), "command", path)
	log.Info("sbr: hook starts")
	began := time.Now()
	status, err := execute(ctx, path, r.opt.command(e)[1:], e, f, log)
	log = log.With("duration", time.Since(began).Round(time.Millisecond))
	if status >= 0 {
		log = log.With("exit-status", status)
	}
	if err != nil {
		log.Error("sbr: hook failed", "problem", err.Error())
		return
	}
	log.Info("sbr: hook ended")
}

// execute returns the exit status, -1 for none, and what went wrong.
func execute(ctx context.Context, path string, args []string, e event, f Facts, log *slog.Logger) (status int, err error) {
	input, err := f.input(e)
	if err != nil {
		return -1, fmt.Errorf("its input: %w", err)
	}
	out := output{log: log}
	stdout, stderr := out.stream("stdout"), out.stream("stderr")
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = f.environment(e), bytes.NewReader(input), stdout, stderr
	cmd.WaitDelay = killAfter
	var told time.Time // when it was told to end
	ownGroup(cmd)
	cmd.Cancel = func() error {
		told = time.Now()
		return endGroup(cmd)
	}
	if err := cmd.Start(); err != nil {
		return -1, fmt.Errorf("it does not start: %w", err)
	}
	err = cmd.Wait()
	stdout.flush()
	stderr.flush()
	out.end()
	if !told.IsZero() {
		killGroup(cmd, told.Add(killAfter))
		return cmd.ProcessState.ExitCode(), fmt.Errorf("it was ended: %w", context.Cause(ctx))
	}
	return cmd.ProcessState.ExitCode(), outcome(err, log)
}

// outcome says in words what Wait returned for a command that was not told to end.
func outcome(err error, log *slog.Logger) error {
	var exit *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrWaitDelay):
		log.Warn("sbr: hook ended, but a process that it started keeps its output open: no more of it is read")
		return nil
	case errors.As(err, &exit):
		return errors.New(exit.String())
	default:
		return err
	}
}
