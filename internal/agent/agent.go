package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/agent/hook"
	"github.com/serf-sbr/serf-sbr/internal/agent/programs"
	"github.com/serf-sbr/serf-sbr/internal/agent/telemetry"
	"github.com/serf-sbr/serf-sbr/internal/agent/web"
	"github.com/serf-sbr/serf-sbr/internal/config"
)

// Exit statuses besides downing.ExitDowned.
const (
	exitLeft     = 0
	exitInternal = 1
	exitProblem  = 2
)

// Options are what Run needs. File and Logger are required.
type Options struct {
	// File is the configuration, validated.
	File *config.File
	// Logger takes all log lines, those of Serf included.
	Logger *slog.Logger
	// Exit ends the process when Run itself hangs on the way down. Nil: os.Exit.
	Exit func(status int)
	// Bootstrap is downing.Config.Bootstrap.
	Bootstrap uint64
	// Listening, if set, is called with the address of the status page.
	Listening func(address string)
}

// Problem is an error in the configuration itself. For everything else that keeps an agent from starting it
// waits: a missing file, address or permission may come, and then the agent needs no restart.
type Problem struct{ error }

// Unwrap returns what is wrong.
func (p Problem) Unwrap() error { return p.error }

// node is the Serf node that the agent protects.
type node interface {
	// prepare opens what start needs. The agent retries it until it works, unless its error is a Problem.
	prepare(ctx context.Context, p *downing.Provider) error
	// waits says what prepare waits for. It is safe for concurrent use.
	waits() string
	// start takes part in the cluster, protected.
	start(ctx context.Context, p *downing.Provider) error
	// joined reports whether other members were found, and what is missing.
	joined() (bool, string)
	// keyProblem says that members answer whose gossip cannot be read; empty if none does.
	keyProblem() string
	// leave makes the node leave the cluster gracefully.
	leave(ctx context.Context, p *downing.Provider) error
	// close ends the rest.
	close()
}

type agent struct {
	file      *config.File
	store     string // the implementation that keeps the lease; empty: none is needed
	log       *slog.Logger
	memory    *downing.Memory
	remembers bool // the memory is open
	hooks     *hook.Runner
	journal   web.Journal
	telemetry *telemetry.Telemetry
	server    *web.Server
	programs  *programs.Host
	node      node
	provider  *downing.Provider
	phase     atomic.Pointer[func() string] // says what the start waits for; nil once started
	watchdog  atomic.Pointer[time.Timer]    // runs once this member is down
}

// leaveTime bounds a graceful leave.
const leaveTime = 20 * time.Second

// Run protects the node until it is downed or leaves, or ctx ends: then it leaves, as serf.leave-on-terminate
// says. It returns the exit status, and an error for the statuses 1 and 2. A Problem is one for an operator.
func Run(ctx context.Context, o Options) (status int, err error) {
	if o.Exit == nil {
		o.Exit = os.Exit
	}
	a := &agent{file: o.File, log: o.Logger}
	defer func() { a.sayExit(status) }() // the last line, after what close has to say
	defer a.close()
	a.waitFor(opening) // before the status can be requested
	if err := a.configure(&o); err != nil {
		return statusOf(err), err
	}
	failed := make(chan error, 1)
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	go a.announce(serving)
	err = a.listen(ctx)
	if err == nil && a.server != nil {
		go func() { failed <- a.server.Serve(serving) }()
		if o.Listening != nil {
			o.Listening(a.server.Addr().String())
		}
	}
	if err == nil {
		err = a.start(ctx)
	}
	if err != nil {
		if ctx.Err() != nil {
			a.log.Info("sbr: stopped before this member was in the cluster", "reason", a.waitingFor())
			return exitLeft, nil
		}
		return statusOf(err), err
	}
	return a.wait(ctx, failed)
}

// sayExit logs how the agent ends. The reason is in earlier log lines, or is the error that Run returns.
func (a *agent) sayExit(status int) {
	if status == exitProblem {
		return
	}
	level, args := slog.LevelInfo, []any{"exit-status", status}
	if status != exitLeft {
		level = slog.LevelError
	}
	if a.provider != nil && a.provider.Status().Member != "" {
		s := a.provider.Status()
		args = append(args, "member", s.Member, "incarnation", s.Incarnation, "incident", s.Incident)
		if s.Trace != "" {
			args = append(args, "trace", s.Trace)
		}
	}
	a.log.Log(context.Background(), level, "sbr: the agent ends", args...)
}

func statusOf(err error) int {
	if errors.As(err, new(Problem)) {
		return exitProblem
	}
	return exitInternal
}

// wait follows the member to its end.
func (a *agent) wait(ctx context.Context, failed <-chan error) (int, error) {
	for {
		select {
		case <-a.provider.Downed():
			<-a.provider.Done()
			return downing.ExitDowned, nil
		case <-a.provider.Left():
			a.log.Info("sbr: the Serf node has left its cluster")
			a.handOver() // no member can take over; it waits for the end of the programs here
			return exitLeft, nil
		case err := <-failed:
			if err != nil { // the member is protected all the same
				a.log.Error("sbr: the status page is gone", "error", err)
			}
			failed = nil
		case <-ctx.Done():
			return a.leave()
		}
	}
}

func (a *agent) leave() (int, error) {
	a.log.Info("sbr: leaving")
	a.handOver()
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	err := a.node.leave(ctx, a.provider)
	select {
	case <-a.provider.Downed(): // it came first
		<-a.provider.Done()
		return downing.ExitDowned, nil
	default:
	}
	if err != nil {
		return exitInternal, fmt.Errorf("leaving: %w", err)
	}
	return exitLeft, nil
}

func (a *agent) waitFor(what string) {
	says := func() string { return what }
	a.phase.Store(&says)
}

func (a *agent) waitingFor() string {
	if says := a.phase.Load(); says != nil {
		return (*says)()
	}
	return ""
}

// opening is what a start does first. What holds it up is said instead.
const opening = "opening files and ports"

// Pauses between two tries of what keeps the agent from starting.
const (
	startFirst = 200 * time.Millisecond
	startMost  = 10 * time.Second
)

// until tries f until it works, its error is a Problem, or ctx ends. It shows what it waits for, and logs
// each change of that.
func (a *agent) until(ctx context.Context, f func() error) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = startFirst, startMost
	said := ""
	before := a.phase.Load()
	_, err := backoff.Retry(ctx, func() (any, error) {
		err := f()
		if errors.As(err, new(Problem)) {
			err = backoff.Permanent(err)
		}
		return nil, err
	}, backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(err error, _ time.Duration) {
			reason := strings.NewReplacer("\n\t", " ", "\n", "; ").Replace(err.Error())
			if reason != said {
				a.log.Error("sbr: the agent waits and does not start: "+reason, "tries-again-within", startMost)
				said = reason
			}
			a.waitFor(reason)
		}))
	if err == nil {
		a.phase.Store(before)
	}
	return err
}

// start takes part in the cluster.
func (a *agent) start(ctx context.Context) error {
	if err := a.open(ctx); err != nil {
		return err
	}
	if err := a.until(ctx, func() error { return a.node.prepare(ctx, a.provider) }); err != nil {
		return err
	}
	if err := a.node.start(ctx, a.provider); err != nil {
		return err
	}
	a.phase.Store(nil)
	if a.file.DowningProvider == config.ProviderNone {
		a.log.Warn("sbr: "+unwatched, "system", a.file.System)
		return nil
	}
	is, held := a.provider.Status(), "none"
	if is.Lease.Kind != "" {
		held = is.Lease.Kind + ":" + is.Lease.Name
	}
	a.log.Info("sbr: this member is protected", "system", a.file.System, "member", is.Member,
		"incarnation", is.Incarnation, "strategy", a.file.SplitBrainResolver.ActiveStrategy, "lease", held)
	return nil
}

const unwatched = "downing-provider is none: nobody watches this node"

// close ends everything that was opened, in the opposite order.
func (a *agent) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if a.programs != nil {
		a.programs.Close(ctx)
	}
	if a.provider != nil {
		_ = a.provider.Stop(ctx)
	}
	if a.node != nil {
		a.node.close()
	}
	if a.server != nil {
		_ = a.server.Shutdown(ctx)
	}
	if a.memory != nil {
		_ = a.memory.Close()
	}
	if a.hooks != nil {
		a.hooks.Close()
	}
	if t := a.watchdog.Load(); t != nil {
		defer t.Stop()
	}
	if a.telemetry != nil {
		if err := a.telemetry.Shutdown(ctx); err != nil {
			a.log.Warn("sbr: not all telemetry was sent", "error", err)
		}
	}
}

// closeTime bounds the end of everything that is not the member's own.
const closeTime = 2 * time.Second

// readyEvery is how often a member that may not work yet is looked at.
const readyEvery = 250 * time.Millisecond

// announce tells systemd, if it started this process with Type=notify, when the member may work for the first
// time, and from then on that the process runs (WatchdogSec). A process that is frozen tells nothing, and is
// killed.
func (a *agent) announce(ctx context.Context) {
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		a.log.Warn("sbr: the watchdog of systemd is not served", "error", err)
	}
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	for state := daemon.SdNotifyReady; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if state == daemon.SdNotifyReady && !(source{a}).Health().Ready.OK {
			continue
		}
		sent, err := daemon.SdNotify(false, state)
		if err != nil {
			a.log.Warn("sbr: systemd was not told", "state", state, "error", err)
			continue // ready is said again
		}
		if !sent || every == 0 {
			return
		}
		if state == daemon.SdNotifyReady {
			state = daemon.SdNotifyWatchdog
			tick.Reset(every / 3)
		}
	}
}
