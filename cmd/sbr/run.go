package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/attach"
	"github.com/serf-sbr/serf-sbr/internal/program"
	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/lease"
)

const runHelp = `Run runs a program in exactly one place: on every machine the same command is started, and where the lease is held the program runs. It waits for
the lease, starts CMD, and ends with CMD's exit status when CMD ends; the next one starts it then. If the lease is lost, CMD and all that it has started
are ended, and it waits for the lease again.

With --singleton the members of a cluster decide instead of a lease: CMD runs next to the agent of the oldest member that has one of this name attached.
When that one leaves (this program gets SIGTERM, or its agent does) CMD runs on until the next one is ready to start it. When the agent is gone, its member
is downed, or it has not answered for as long as CMD was allowed to run, CMD is ended, and this program attaches to the agent again.

CMD finds in its environment:
  SBR_TOKEN   the fencing token: larger than that of all who ran it before. Send it along with whatever CMD changes elsewhere
  SBR_LEASE   the lease
  SBR_HOLDER  who this is, as the lease names it
or, with --singleton:
  SBR_TOKEN, SBR_SINGLETON, SBR_SYSTEM, SBR_MEMBER, SBR_INCARNATION
  SBR_FROM        the member that handed over; empty if none did
  SBR_STATE       a file with what CMD has left there
  SBR_STATE_NEXT  a file that CMD may write: at most 512 bytes for the next one

CMD gets the signals that this program gets. To end it, it gets SIGTERM, with its whole process group, and SIGKILL after --stop-timeout. If the lease cannot be
renewed it gets SIGTERM so long before the lease runs out, and SIGKILL when it does. If somebody took the lease away it gets SIGKILL at once. What
CMD has started and left behind is ended with it, on Linux also what left its process group; so CMD must not put itself into the background.

With --once, for cron: the process that gets the lease runs CMD, the others leave with 0 as soon as they have observed a heartbeat of the holder, which takes a heartbeat
interval. --hold-for keeps the lease for those that come a bit later.

All who share a lease need the same --heartbeat-timeout. It must not be the lease that decides partitions: that one is the resolver's.

Exit statuses: that of CMD, 128+n if signal n ended it, 0 for --once elsewhere, 1 the lease is refused, CMD does not start, or with --once was stopped before its end,
2 bad usage, or CMD is no program.`

// runFlags are the flags of `sbr run`.
type runFlags struct {
	leaseFlags
	agent                     agentFlags
	singleton, endpoint       string
	heartbeatTimeout          strictyaml.Span
	interval, operation, stop time.Duration
	once                      bool
	holdFor                   time.Duration
	command                   []string
}

func newRun(s streams) *cobra.Command {
	var r runFlags
	c := &cobra.Command{
		Use:   "run {--lease LEASE | --singleton NAME} [flags] -- CMD [ARG…]",
		Short: "run a program in exactly one place", Long: runHelp,
		Example: "  sbr run --singleton backup -- ./backup.sh --full\n" +
			"  sbr run --lease file:/run/backup.lease -- ./backup.sh --full\n" +
			"  sbr run --lease kubernetes:backup -n jobs --once --hold-for 1m -- ./backup.sh",
	}
	flags := c.Flags()
	flags.SetInterspersed(false) // what follows CMD is CMD's
	flags.StringVar(&r.lease, "lease", "",
		"the lease: kubernetes:NAME, file:PATH, or etcd, postgres or mongodb:NAME")
	flags.StringVar(&r.singleton, "singleton", "",
		"run CMD as this singleton of the cluster, through the agent of this machine, instead of --lease")
	r.agent.addURL(flags, "http.listen of the configuration, $SBR_URL")
	flags.StringVar(&r.endpoint, "endpoint", "",
		"where CMD is reached when it runs here, for those who look for the singleton")
	r.agent.addTrust(flags)
	addConfig(flags, &r.file, ": the times of the lease and the access to its store, or where the agent listens")
	r.addPlace(flags)
	flags.Var(spanFlag{&r.heartbeatTimeout}, "heartbeat-timeout",
		"how long everybody waits for a silent holder (default: the configuration's, or 2m)")
	flags.DurationVar(&r.interval, "heartbeat-interval", 0,
		"how often the holder renews (default: a tenth of the heartbeat-timeout, at least 5s)")
	flags.DurationVar(&r.operation, "lease-operation-timeout",
		0, "how long one request to the lease may take (default: the configuration's, or 5s)")
	flags.DurationVar(&r.stop, "stop-timeout", program.DefaultOptions().StopTimeout,
		"how long CMD may take to end after SIGTERM")
	flags.BoolVar(&r.once, "once", false, "leave with 0 if somebody else runs it, instead of waiting")
	flags.DurationVar(&r.holdFor, "hold-for", 0,
		"keep the lease so long, from the start of CMD, although CMD has ended")
	lines := spool{to: s.err, writes: make(chan func(), spooled)}
	log := addLog(c, streams{err: lines})
	c.Args = func(_ *cobra.Command, args []string) error { r.command = args; return nil }
	c.RunE = verb(func() error {
		go lines.run()
		defer lines.flush()
		return r.run(c.Context(), log())
	})
	return c
}

// newSupervise is the other half of `sbr run`, which it starts by itself.
func newSupervise() *cobra.Command {
	return &cobra.Command{
		Use: "supervise", Short: "look after the program of sbr run", Hidden: true, Args: cobra.NoArgs,
		RunE: verb(func() error {
			err := program.Supervise()
			if errors.Is(err, program.ErrNotSupervisor) {
				return badInput{err}
			}
			return err
		}),
	}
}

func (r *runFlags) run(ctx context.Context, log *slog.Logger) error {
	path, err := r.check()
	if err != nil {
		return badInput{err}
	}
	if r.singleton != "" {
		return r.attached(ctx, path, log)
	}
	return r.with(ctx, func(t *target) error {
		if err := r.times(t); err != nil {
			return badInput{err}
		}
		if err := r.usable(ctx, t, log); err != nil {
			return err
		}
		l, err := lease.New(t.store, runOwner(), t.settings, lease.Options{Logger: log})
		if err != nil {
			return badInput{err}
		}
		defer l.Close()
		if notice := program.Notice(t.settings, r.stop); notice < r.stop {
			log.Warn("sbr: the heartbeat-timeout is too short for the stop-timeout: when the lease cannot be renewed the program is killed earlier",
				"stop-timeout", r.stop, "has", notice, "heartbeat-timeout", t.settings.HeartbeatTimeout)
		}
		return r.guarded(ctx, path, program.OverLease(l, program.LeaseOptions{
			Where: t.where, StopTimeout: r.stop, Orphaned: r.releaseOf(l.Owner()), Once: r.once, Log: log,
		}), log)
	})
}

// releaseOf is the command line that releases the lease where the owner holds it.
func (r *runFlags) releaseOf(owner string) []string {
	c := []string{os.Args[0], "lease", "force-release", "--yes", "--holder", owner, "--lease", r.lease}
	for flag, value := range map[string]string{"--config": r.file, "--kubeconfig": r.kubeconfig,
		"--context": r.context, "--namespace": r.namespace} {
		if value != "" {
			c = append(c, flag, value)
		}
	}
	return c
}

// guarded runs CMD in the turns of g.
func (r *runFlags) guarded(ctx context.Context, path string, g program.Guard, log *slog.Logger) error {
	o := program.DefaultOptions()
	o.Supervisor, o.Path, o.Args, o.Env, o.StopTimeout = []string{os.Args[0], "supervise"}, path, r.command,
		os.Environ(), r.stop
	status, err := program.Run(ctx, program.RunOptions{Guard: g, Program: o, Once: r.once,
		HoldFor: r.holdFor, Log: log})
	if err == nil && status != 0 {
		return exit{status: status}
	}
	return err
}

// check reports every problem of the command line, and returns the file of CMD.
func (r *runFlags) check() (path string, err error) {
	var errs []error
	problem := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	if r.singleton == "" {
		problem(r.lease == "",
			"where is the one place decided? give --singleton NAME, --lease file:PATH or --lease STORE:NAME")
		problem(r.agent != (agentFlags{}) || r.endpoint != "",
			"--url, --endpoint, --token-file and --ca-file are for --singleton")
	} else {
		problem(r.lease != "", "--lease and --singleton: give one of them; "+
			"whether a singleton needs a lease is said in the agents' configuration (singleton.use-lease)")
		problem(r.kubeconfig != "" || r.context != "" || r.namespace != "" || r.heartbeatTimeout != 0 ||
			r.interval != 0 || r.operation != 0,
			"the flags of the lease are not for --singleton: its lease is in the agents' configuration (singleton.use-lease)")
		problem(r.stop > attach.MaxStopTimeout, "--stop-timeout %v: at most %v can be waited for", r.stop,
			attach.MaxStopTimeout)
	}
	problem(r.stop <= 0, "--stop-timeout %v: it must be more than 0s", r.stop)
	problem(r.holdFor < 0, "--hold-for %v: it must not be negative", r.holdFor)
	problem(len(r.command) == 0, "which program? give it behind --, as in: sbr run --lease file:PATH -- CMD")
	if len(r.command) > 0 {
		if path, err = exec.LookPath(r.command[0]); errors.Is(err, exec.ErrNotFound) {
			err = fmt.Errorf("%q is not in $PATH", r.command[0])
		}
		errs = append(errs, err)
	}
	return path, errors.Join(errs...)
}

// times lays the flags over the times of the configuration.
func (r *runFlags) times(t *target) error {
	if r.heartbeatTimeout != 0 {
		t.settings.HeartbeatTimeout, t.settings.HeartbeatInterval = time.Duration(r.heartbeatTimeout), 0
	}
	if r.interval != 0 {
		t.settings.HeartbeatInterval = r.interval
	}
	if r.operation != 0 {
		t.settings.OperationTimeout = r.operation
	}
	return t.settings.Validate()
}

// usable tries the store, and refuses a lease that decides partitions.
func (r *runFlags) usable(ctx context.Context, t *target, log *slog.Logger) error {
	if t.config.System != "" && t.spec.Name == t.config.LeaseName() {
		return badInput{fmt.Errorf("%s decides the partitions of %s: give the program a lease of its own", t.where,
			t.config.System)}
	}
	bounded, cancel := context.WithTimeout(ctx, t.settings.OperationTimeout)
	defer cancel()
	if err := lease.Preflight(bounded, t.store); errors.Is(err, lease.ErrRefused) {
		return badInput{err}
	} else if err != nil {
		log.Warn("sbr: the lease does not answer as it should; going on", "lease", t.where, "problem", err)
	}
	if s, err := t.read(ctx); err == nil && s.Record.Verdict != nil {
		return badInput{fmt.Errorf("%s decides the partitions of a cluster (it holds verdict %d): give the program a lease of its own",
			t.where, s.Record.Verdict.Token)}
	}
	return nil
}

// runOwner names this life of this process.
func runOwner() string {
	return fmt.Sprintf("%s/%d-%s", hostName(), os.Getpid(), strings.ToLower(rand.Text()[:6]))
}

// attached runs CMD whenever the agent of this machine says so.
func (r *runFlags) attached(ctx context.Context, path string, log *slog.Logger) error {
	at := r.agent
	at.file, at.timeout = r.file, time.Minute
	if at.url != "" && !strings.Contains(at.url, "://") {
		at.url = "http://" + at.url
	}
	client, err := at.client()
	if err != nil {
		return err
	}
	g := attach.OverAgent(attach.AgentOptions{
		URL: client.url, Token: client.token, HTTP: client.http, Singleton: r.singleton, Endpoint: r.endpoint,
		StopTimeout: r.stop,
		Lock:        lockPath(client.url, r.singleton), Once: r.once, Version: downing.Version(), Log: log,
	})
	defer g.Close()
	return r.guarded(ctx, path, g.Next, log)
}

// lockPath is one file for each singleton of each agent. It is in a folder that every process of this user
// has.
func lockPath(url, singleton string) string {
	sum := sha256.Sum256([]byte(url + "\n" + singleton))
	return filepath.Join(os.TempDir(), fmt.Sprintf("sbr-run-%d-%s.lock", os.Getuid(),
		hex.EncodeToString(sum[:8])))
}

// spool writes log lines in order, and lets nobody wait for that: who logs also renews the lease and ends CMD.
// A pipe that nobody reads takes no lines; those for which there is no room are left out.
type spool struct {
	to     io.Writer
	writes chan func()
}

const (
	// spooled is how many lines may wait.
	spooled = 1024
	// flushTime is how long the last lines may take.
	flushTime = time.Second
)

func (s spool) run() {
	for write := range s.writes { // as long as this process lives
		write()
	}
}

// Write implements io.Writer.
func (s spool) Write(line []byte) (int, error) {
	line = bytes.Clone(line)
	select {
	case s.writes <- func() { _, _ = s.to.Write(line) }: // as package log/slog does
	default:
	}
	return len(line), nil
}

// flush waits for the lines so far.
func (s spool) flush() {
	written, late := make(chan struct{}), time.After(flushTime)
	select {
	case s.writes <- func() { close(written) }:
	case <-late:
		return
	}
	select {
	case <-written:
	case <-late:
	}
}
