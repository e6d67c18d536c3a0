package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/agent/hook"
	"github.com/serf-sbr/serf-sbr/internal/agent/telemetry"
	"github.com/serf-sbr/serf-sbr/internal/agent/web"
	"github.com/serf-sbr/serf-sbr/internal/config"
)

// open makes everything ready that needs no other member. What is wrong is a Problem.
func (a *agent) open(ctx context.Context, o *Options) (err error) {
	f := a.file
	if a.state, err = openState(f.System, a.log); err != nil {
		return Problem{err}
	}
	if err := a.chooseLease(); err != nil {
		return Problem{err}
	}
	h := &f.Hooks
	a.hooks, err = hook.New(hook.Options{
		OnSuspend: h.OnSuspend, OnResume: h.OnResume, OnDown: h.OnDown, Timeout: h.Timeout, PIDFile: h.PIDFile, Signal: h.Signal, Log: a.log,
	})
	if err != nil {
		return Problem{err}
	}
	if a.telemetry, err = telemetry.New(ctx, telemetry.Options{Version: downing.Version(), System: f.System, Logger: a.log}); err != nil {
		return Problem{err}
	}
	cfg, err := a.downing(o)
	if err != nil {
		return err
	}
	if a.provider, err = downing.New(cfg); err != nil {
		return Problem{err}
	}
	a.follow()
	n, err := newNode(f, a.state, a.log)
	if err != nil {
		return Problem{err}
	}
	a.node = n
	a.programs = a.host()
	return a.listen()
}

func newNode(f *config.File, st *state, log *slog.Logger) (node, error) {
	if f.Serf.OwnNode() {
		return newOwn(f, log)
	}
	return newSidecar(f, st, log)
}

func (a *agent) listen() error {
	h := &a.file.HTTP
	if h.Listen == "" {
		return nil
	}
	s, err := web.New(web.Options{
		Listen: h.Listen, TLSCert: h.TLSCertFile, TLSKey: h.TLSKeyFile, TokenFile: h.TokenFile,
		Source: source{a}, Metrics: a.telemetry.Handler(), Programs: a.programs.Run(), Singletons: a.programs.List(), Logger: a.log,
	})
	if err != nil {
		return Problem{err}
	}
	a.server = s
	a.log.Info("sbr: status page", "address", s.Addr().String())
	return nil
}

// downing is the provider's configuration.
func (a *agent) downing(o *Options) (downing.Config, error) {
	f := a.file
	cfg, err := downing.ParseConfig("sbr.yaml", f.Effective())
	if err != nil {
		return cfg, fmt.Errorf("the effective configuration does not read back: %w", err)
	}
	cfg.Logger, cfg.Observe = a.log, a.journal.Record
	cfg.Meter, cfg.Tracer = a.telemetry.Meter(), a.telemetry.Tracer()
	cfg.Grace = f.Hooks.Grace
	cfg.AgentTimeout = f.Serf.RPCTimeout
	cfg.Gossip = gossip(f)
	cfg.WasDowned = a.state.wasDowned
	cfg.KeepTags = !bool(f.Serf.LeaveOnTerminate)
	cfg.RefuseStart, cfg.Bootstrap = true, o.Bootstrap
	exit := o.Exit
	cfg.Exit = func(status int) { // Run ends the process; this is for when that hangs
		a.watchdog.Store(time.AfterFunc(2*closeTime, func() {
			a.log.Error("sbr: the process does not end by itself")
			exit(status)
		}))
	}
	return cfg, nil
}

// follow runs the hooks.
func (a *agent) follow() {
	p := a.provider
	p.OnSuspend(func(reason string) { a.hooks.Suspended(a.facts(reason)) })
	p.OnResume(func(reason string) { a.hooks.Resumed(a.facts(reason)) })
	p.OnDown(func(reason string) {
		facts := a.facts(reason)
		a.state.remember(facts.Incarnation)
		a.hooks.Down(context.Background(), facts) // bounded by hooks.timeout
	})
}

func (a *agent) facts(reason string) hook.Facts {
	s := a.provider.Status()
	return hook.Facts{
		System: s.System, Member: s.Member, Incarnation: s.Incarnation, State: string(s.State), Reason: reason, At: time.Now(),
		Token: s.Verdict.Token, Unreachable: s.Unreachable, Survivors: s.Verdict.Survivors, Down: s.Verdict.Down,
	}
}

// chooseLease keeps the lease in a file where nothing else was configured, and says so.
func (a *agent) chooseLease() error {
	f := a.file
	if f.DowningProvider != config.ProviderResolver || !f.SplitBrainResolver.NeedsLease() {
		return nil
	}
	if !f.LeaseChosen() && !kubernetesAround() {
		path, err := a.state.leasePath(f.LeaseName())
		if err != nil {
			return err
		}
		f.UseFileLease(path)
		if err := f.Validate(); err != nil {
			return err
		}
	}
	if f.SplitBrainResolver.LeaseMajority.LeaseImplementation == config.ImplementationFile {
		if f.Lease.File.Path == "" {
			return errors.New("lease.file.path: is empty")
		}
		a.log.Warn("sbr: THE LEASE IS A FILE: this is safe only while ALL members of the system run on this one machine; across machines set lease-implementation: kubernetes",
			"path", f.Lease.File.Path)
	}
	return nil
}
