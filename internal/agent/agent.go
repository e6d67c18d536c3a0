package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

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

// Options are what Run needs. File is required.
type Options struct {
	// File is the configuration, validated.
	File *config.File
	// Logger takes all log lines, those of Serf included. Nil: slog.Default().
	Logger *slog.Logger
	// Exit ends the process when Run itself hangs on the way down. Nil: os.Exit.
	Exit func(status int)
	// Bootstrap is downing.Config.Bootstrap.
	Bootstrap bool
	// Listening, if set, is called with the address of the status page.
	Listening func(address string)
}

// Problem is an error of the configuration or of what it names: a file, an address, a right. An operator can mend it; trying again alone does not.
type Problem struct{ error }

// Unwrap returns what is wrong.
func (p Problem) Unwrap() error { return p.error }

func problem(format string, args ...any) error { return Problem{fmt.Errorf(format, args...)} }

// node is the Serf node that the agent protects.
type node interface {
	// start takes part in the cluster, protected.
	start(ctx context.Context, p *downing.Provider) error
	// joined reports whether the others were found, and what is missing.
	joined() (bool, string)
	// leave ends the node's part in the cluster in peace.
	leave(ctx context.Context, p *downing.Provider) error
	// close ends what is left.
	close()
}

type agent struct {
	file      *config.File
	log       *slog.Logger
	state     *state
	hooks     *hook.Runner
	journal   web.Journal
	telemetry *telemetry.Telemetry
	server    *web.Server
	programs  *programs.Host
	node      node
	provider  *downing.Provider
	phase     atomic.Pointer[string]     // what the start waits for; nil once started
	watchdog  atomic.Pointer[time.Timer] // runs once this member is down
}

// leaveTime bounds a leave in peace.
const leaveTime = 20 * time.Second

// Run protects the node until it is downed or leaves, or ctx ends: then it leaves, as serf.leave-on-terminate says. It returns the exit status,
// and an error for the statuses 1 and 2. A Problem is one for an operator.
func Run(ctx context.Context, o Options) (status int, err error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Exit == nil {
		o.Exit = os.Exit
	}
	a := &agent{file: o.File, log: o.Logger}
	defer a.close()
	a.waitFor("the Serf node and the lease") // before anybody can ask
	if err := a.open(ctx, &o); err != nil {
		return statusOf(err), err
	}
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	failed := make(chan error, 1)
	if a.server != nil {
		go func() { failed <- a.server.Serve(serving) }()
		if o.Listening != nil {
			o.Listening(a.server.Addr().String())
		}
	}
	if err := a.start(ctx); err != nil {
		if ctx.Err() != nil {
			a.log.Info("sbr: stopped before this member was in the cluster", "waiting-for", a.waitingFor())
			return exitLeft, nil
		}
		return statusOf(err), err
	}
	return a.wait(ctx, failed)
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
			a.handOver() // there is nobody to take over; it waits for the end of what runs here
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

func (a *agent) waitFor(what string) { a.phase.Store(&what) }

func (a *agent) waitingFor() string {
	if p := a.phase.Load(); p != nil {
		return *p
	}
	return ""
}

// start takes part in the cluster.
func (a *agent) start(ctx context.Context) error {
	if err := a.node.start(ctx, a.provider); err != nil {
		return err
	}
	a.phase.Store(nil)
	a.log.Info("sbr: this member is protected", "system", a.file.System, "member", a.provider.Status().Member, "incarnation", a.provider.Status().Incarnation,
		"strategy", a.file.SplitBrainResolver.ActiveStrategy)
	return nil
}

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
