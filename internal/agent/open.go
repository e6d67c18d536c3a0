package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/agent/hook"
	"github.com/serf-sbr/serf-sbr/internal/agent/programs"
	"github.com/serf-sbr/serf-sbr/internal/agent/telemetry"
	"github.com/serf-sbr/serf-sbr/internal/agent/web"
	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/singleton"
)

// configure makes everything that follows from the configuration alone. Its errors are Problems.
func (a *agent) configure(o *Options) (err error) {
	if err := a.chooseLease(); err != nil {
		return Problem{err}
	}
	// The commands are files: they are looked for later.
	signal := config.Hooks{PIDFile: a.file.Hooks.PIDFile, Signal: a.file.Hooks.Signal}
	if _, err := hook.New(&signal, a.log); err != nil {
		return Problem{err}
	}
	dir, err := stateDir()
	if err != nil {
		return Problem{err}
	}
	a.memory = downing.NewMemory(dir, a.file.System+"@"+place(&a.file.Serf)) // it is opened before anybody asks
	if a.telemetry, err = telemetry.New(context.Background(), a.file.System, a.log); err != nil {
		return Problem{err} // of the environment, which stays as it is
	}
	cfg, err := a.downing(o)
	if err != nil {
		return err
	}
	if a.provider, err = downing.New(cfg); err != nil {
		return Problem{err}
	}
	a.programs = programs.New(programs.Options{Cluster: a.provider, Configure: a.singleton,
		Waiting: a.noPrograms, Logger: a.log})
	return nil
}

// open makes everything ready that needs no other member.
func (a *agent) open(ctx context.Context) error {
	then := "entering the cluster"
	if a.store != "" {
		then = "waiting for the lease " + a.file.LeaseName()
	}
	err := a.until(ctx, func() (err error) {
		if !a.remembers {
			switch err := a.memory.Open(); {
			case err == nil:
			case errors.As(err, new(*json.SyntaxError)), errors.As(err, new(*json.UnmarshalTypeError)):
				return fmt.Errorf("%w: the file is damaged: remove it. This member then forgets its earlier "+
					"incarnations and whether the last one was downed, the last verdict, and the other members "+
					"with those that it could not reach; it waits as a newcomer", err)
			default:
				return fmt.Errorf("%w: set STATE_DIRECTORY to a folder that can be written, and that no other agent uses",
					err)
			}
			a.remembers = true
		}
		if a.hooks == nil {
			if a.hooks, err = hook.New(&a.file.Hooks, a.log); err != nil {
				return err
			}
			a.follow()
			if path := a.file.Hooks.PIDFile; path != "" {
				if _, err := os.Stat(path); err != nil { // the application may start later
					a.log.Warn("sbr: hooks.pid-file is not there: until it is, no signal is sent when this member is "+
						"downed, and the application runs on",
						"pid-file", path, "error", err)
				}
			}
		}
		var n node
		if a.file.Serf.OwnNode() {
			n, err = newOwn(a.file, then, a.log)
		} else {
			n, err = newSidecar(a.file, then, a.log)
		}
		if err == nil {
			a.node = n
		}
		return err
	})
	if err == nil {
		waits := a.node.waits
		a.phase.Store(&waits)
	}
	return err
}

// listen opens the status page, first of all: it shows what the start waits for. An agent without the page
// that it was told to have does not go on: most likely another agent is here already.
func (a *agent) listen(ctx context.Context) error {
	h := &a.file.HTTP
	if h.Listen == "" {
		return nil
	}
	return a.until(ctx, func() error {
		s, err := web.New(web.Options{
			Listen: h.Listen, TLSCert: h.TLSCertFile, TLSKey: h.TLSKeyFile, TokenFile: h.TokenFile,
			Source: source{a}, Metrics: a.telemetry.Handler, Programs: a.programs.Run(),
			Down: a.provider.Down, Logger: a.log,
		})
		if err != nil {
			return err
		}
		a.server = s
		a.log.Info("sbr: status page", "address", s.Addr().String())
		return nil
	})
}

// downing is the provider's configuration.
func (a *agent) downing(o *Options) (downing.Config, error) {
	f := a.file
	cfg, err := downing.ParseConfig("sbr.yaml", f.Effective())
	if err != nil {
		return cfg, fmt.Errorf("the effective configuration does not read back: %w", err)
	}
	cfg.Logger, cfg.Observe = a.log, a.journal.Record
	cfg.Meter, cfg.Tracer = a.telemetry.Meter, a.telemetry.Tracer
	cfg.Grace = f.Hooks.Grace
	cfg.AgentTimeout = f.Serf.RPCTimeout
	cfg.Gossip = gossip(f.Serf.Profile)
	cfg.Memory = a.memory
	cfg.KeepTags = !bool(f.Serf.LeaveOnTerminate)
	cfg.Bootstrap = o.Bootstrap
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
	// bounded by hooks.timeout
	p.OnDown(func(reason string) { a.hooks.Down(context.Background(), a.facts(reason)) })
}

func (a *agent) facts(reason string) hook.Facts {
	s := a.provider.Status()
	return hook.Facts{
		System: s.System, Member: s.Member, Incarnation: s.Incarnation, Incident: s.Incident, Trace: s.Trace,
		State: string(s.State), Reason: reason, At: time.Now(), Token: s.Verdict.Token, Unreachable: s.Unreachable,
		Survivors: s.Verdict.Survivors, Down: s.Verdict.Down,
	}
}

// chooseLease finds out where the lease is kept, and says so.
func (a *agent) chooseLease() (err error) {
	f := a.file
	if a.store, err = f.LeaseStore(); err != nil {
		return err
	}
	if a.store != "" {
		a.log.Info("sbr: the lease", "kind", a.store, "name", f.LeaseName())
	}
	if a.store == config.ImplementationFile || f.Singleton.UseLease == config.ImplementationFile {
		a.log.Warn("sbr: THE LEASE IS A FILE: this is safe only while ALL members of the system run on this one machine; "+
			"across machines keep it in kubernetes, etcd, postgres or mongodb", "path", f.Lease.File.Path)
	}
	return nil
}

// place tells the agents of one system apart that share a folder on one machine. It is the same at each
// start.
func place(s *config.Serf) string {
	if !s.OwnNode() {
		return s.RPCAddress()
	}
	host, _ := os.Hostname() // without one the start fails elsewhere
	return cmp.Or(s.Node, host)
}

func stateDir() (string, error) {
	if dir := os.Getenv("STATE_DIRECTORY"); dir != "" { // systemd's; a list where there are several
		first, _, _ := strings.Cut(dir, ":")
		return first, nil
	}
	if os.Geteuid() == 0 {
		return "/var/lib/sbr", nil
	}
	base := os.Getenv("XDG_STATE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("no place for the state: set STATE_DIRECTORY: %w", err)
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "sbr"), nil
}

// noPrograms says why no program can be attached; empty when one can.
func (a *agent) noPrograms() string {
	if what := a.waitingFor(); what != "" {
		return "starting: " + what
	}
	if reason := a.provider.Reason(); reason != "" {
		return "down: " + reason
	}
	return ""
}

// singleton returns the rules of a singleton.
func (a *agent) singleton(name string) (singleton.Config, error) {
	f := a.file
	c := singleton.DefaultConfig()
	if f.DowningProvider == config.ProviderNone {
		return c, errors.New(unwatched)
	}
	c.HandOverRetryInterval, c.NumberOfRetries = f.Singleton.HandOverRetryInterval, f.Singleton.NumberOfRetries
	c.LeaseRetryInterval, c.RemovalMargin = f.Singleton.LeaseRetryInterval, f.Margin()
	if f.Singleton.UseLease == "" {
		if c.RemovalMargin == 0 {
			return c, errors.New("stable-after is 0s: set singleton.removal-margin, or singleton.use-lease")
		}
		return c, nil
	}
	c.UseLease, c.LeaseName = f.Singleton.UseLease, f.SingletonLeaseName(name)
	c.LeaseDecode, c.Lease = f.SingletonLease(name), f.Lease.Settings(f.Singleton.UseLease)
	return c, nil
}

// handOverMargin is what a hand-over may take beyond the time in which a successor is looked for.
const handOverMargin = time.Second

// handOver gives away what runs here, before the member leaves.
func (a *agent) handOver() {
	ctx, cancel := context.WithTimeout(context.Background(), a.programs.Patience()+handOverMargin)
	defer cancel()
	a.programs.Leave(ctx)
}

// joins keeps the outcome of the attempts to join others.
type joins struct {
	log *slog.Logger

	mu    sync.Mutex
	found bool // others, or it is not this agent's business to find them
	last  error
	key   string // what is wrong with the gossip keys
}

// keyErrors are what memberlist, here or in a stock agent, says of a member that answers a join and cannot be
// read.
var keyErrors = []string{
	"no installed keys could decrypt the message", "encryption is configured but remote state is not encrypted",
	"remote state is encrypted and encryption is not configured",
}

// note records the outcome of a join. For the failure detector and for a process that waits for members,
// members that answer with another gossip key look like failed ones. A join without an answer says nothing
// about keys.
func (j *joins) note(place string, found bool, err error) {
	differ := err != nil && slices.ContainsFunc(keyErrors, func(text string) bool {
		return strings.Contains(strings.ToLower(err.Error()), text)
	})
	j.mu.Lock()
	defer j.mu.Unlock()
	j.found, j.last = j.found || found, err
	switch {
	case found:
		j.key = ""
	case differ && j.key == "":
		j.key = "a member at " + place + " answers, and has another gossip key: give all members the same keys"
		j.log.Error("sbr: "+j.key, "error", firstLine(err))
	}
}

// joined reports whether other members were found, and what is missing.
func (j *joins) joined() (bool, string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.found || j.last == nil {
		return j.found, "joining"
	}
	return false, "joining: nobody answers: " + firstLine(j.last)
}

// keyProblem describes a problem with the gossip keys; empty if none is known.
func (j *joins) keyProblem() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.key
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	return line
}
