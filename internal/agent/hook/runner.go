package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/internal/patience"
	"github.com/serf-sbr/serf-sbr/internal/sleep"
)

// Reasons for which a run is ended.
var (
	errTimeout = errors.New("it ran longer than hooks.timeout")
	errDowned  = errors.New("this member is down, which counts more")
	errClosed  = errors.New("the agent ends")
)

// Runner runs the commands. Its methods may be called from any goroutine.
type Runner struct {
	opt      *config.Hooks
	log      *slog.Logger
	commands map[event][]string
	sig      os.Signal

	// changes ends the commands of suspend and resume, all ends everything.
	changes, all       context.Context
	endChanges, endAll context.CancelCauseFunc

	runs sync.WaitGroup

	mu      sync.Mutex
	next    *change // the newest change that has not begun
	working bool    // a goroutine takes care of next
	downed  bool
	closed  bool
}

// change is a suspend or a resume that waits.
type change struct {
	event   event
	facts   Facts
	instead int // how many earlier ones it stands for
}

// New returns a Runner, or every problem: a command that does not exist or cannot be executed, a signal that
// nobody knows. At rest it has no goroutine. The log takes what happens, and what the commands print.
func New(h *config.Hooks, log *slog.Logger) (*Runner, error) {
	commands, sig, err := resolve(h)
	if err != nil {
		return nil, err
	}
	r := &Runner{opt: h, log: log, commands: commands, sig: sig}
	r.all, r.endAll = context.WithCancelCause(context.Background())
	r.changes, r.endChanges = context.WithCancelCause(r.all)
	return r, nil
}

// Suspended runs on-suspend, and returns at once. After Down or Close it does nothing.
func (r *Runner) Suspended(f Facts) { r.enqueue(suspend, f) }

// Resumed runs on-resume, and returns at once. After Down or Close it does nothing.
func (r *Runner) Resumed(f Facts) { r.enqueue(resume, f) }

// enqueue replaces the waiting change, also by an event without a command: the earlier event is outdated.
func (r *Runner) enqueue(e event, f Facts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.downed || r.closed {
		return
	}
	c := &change{event: e, facts: f.complete()}
	if r.next != nil {
		c.instead = r.next.instead + 1
	}
	r.next = c
	if !r.working {
		r.working = true
		r.runs.Go(r.work)
	}
}

func (r *Runner) work() {
	for c := r.take(); c != nil; c = r.take() {
		if c.instead > 0 {
			r.log.Info("sbr: hooks are left out for changes that were over before they could run",
				"changes", c.instead)
		}
		r.run(r.changes, c.event, c.facts)
	}
}

func (r *Runner) take() *change {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.next
	r.next = nil
	if r.downed || r.closed {
		c = nil
	}
	r.working = c != nil
	return c
}

// Down runs on-down and signals the process of the pid file, at the same time. It returns when both are done,
// at the latest after hooks.timeout or when ctx ends: then a run is being ended in the background, which
// Close waits for. Only the first call does anything. A ctx that has ended already leaves no time for the
// command; the signal is sent all the same.
func (r *Runner) Down(ctx context.Context, f Facts) {
	ctx, cancel := patience.WithTimeout(ctx, r.opt.Timeout, errTimeout)
	defer cancel()
	if done := r.down(ctx, f.complete()); done != nil {
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
}

// down starts the command that Down waits for: it ends with ctx or with the Runner. Nil: there is no command.
func (r *Runner) down(ctx context.Context, f Facts) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.downed || r.closed {
		return nil
	}
	r.downed = true
	r.endChanges(errDowned)
	done := make(chan struct{})
	r.runs.Go(func() {
		defer close(done)
		var both sync.WaitGroup
		both.Go(func() { r.signal(f) })
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(r.all, func() { cancel(context.Cause(r.all)) })()
		r.run(ctx, down, f)
		both.Wait()
	})
	return done
}

// Close ends everything that still runs and waits for it, up to a few seconds. It may be called more than
// once.
func (r *Runner) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.endAll(errClosed)
	sleep.Within(time.After(2*killAfter+time.Second), r.runs.Wait)
}

// killAfter is how long a command that was asked to end may take, and how long its output is read after its
// end.
const killAfter = time.Second

// run runs the command of an event, if there is one, and logs how it went.
func (r *Runner) run(ctx context.Context, e event, f Facts) {
	command := r.commands[e]
	if len(command) == 0 {
		return
	}
	ctx, cancel := patience.WithTimeout(ctx, r.opt.Timeout, errTimeout)
	defer cancel()
	log := f.log(r.log).With("hook", "on-"+string(e), "command", command[0])
	log.Info("sbr: hook starts")
	began := time.Now()
	status, err := execute(ctx, command, e, f, log)
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
func execute(ctx context.Context, command []string, e event, f Facts, log *slog.Logger) (
	status int, err error) {
	input, err := f.input(e)
	if err != nil {
		return -1, fmt.Errorf("its input: %w", err)
	}
	var stdout, stderr output
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = environment(input), bytes.NewReader(input), &stdout, &stderr
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
	stdout.log("stdout", log)
	stderr.log("stderr", log)
	if !told.IsZero() {
		killGroup(cmd, told.Add(killAfter))
		return cmd.ProcessState.ExitCode(), fmt.Errorf("it was ended: %w", context.Cause(ctx))
	}
	return cmd.ProcessState.ExitCode(), outcome(err, log)
}

// outcome describes what Wait returned for a command that was not asked to end.
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

// maxOutput is how much of each of its two outputs is logged of one run, in bytes.
const maxOutput = 16 << 10

// output keeps the beginning of what a command prints, and counts the rest. Write never fails: output must
// not block a command.
type output struct {
	kept    bytes.Buffer
	dropped int
}

func (o *output) Write(p []byte) (int, error) {
	n := min(len(p), maxOutput-o.kept.Len())
	o.kept.Write(p[:n])
	o.dropped += len(p) - n
	return len(p), nil
}

// log logs what was printed, line by line.
func (o *output) log(name string, to *slog.Logger) {
	for line := range strings.Lines(strings.ToValidUTF8(o.kept.String(), "\uFFFD")) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			to.Info("sbr: hook printed", "output", name, "line", line)
		}
	}
	if o.dropped > 0 {
		to.Warn("sbr: hook printed more than is logged", "output", name, "dropped-bytes", o.dropped,
			"logged-bytes", maxOutput)
	}
}
