package programs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/attach"
	core "github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/internal/slot/drive"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/singleton"
)

// MaxPrograms is how many programs may be attached. Their names travel in a tag of the node, which may have
// no room for so many: Serf allows 512 bytes for all tags.
const MaxPrograms = 32

// margin is for whatever takes time between the end of a connection and the end of the program.
const margin = 5 * time.Second

// Options are what New needs; all are required.
type Options struct {
	// Cluster is this member's view of the cluster.
	Cluster singleton.Cluster
	// Configure returns the rules of the singleton called name. Name, Run, Endpoint, StopTimeout and Logger
	// are set by the Host.
	Configure func(name string) (singleton.Config, error)
	// Waiting says why no program can be attached yet; empty: it can.
	Waiting func() string
	// Logger takes the log lines.
	Logger *slog.Logger
}

// Host manages the programs that are attached to one agent. All methods are safe for concurrent use.
type Host struct {
	opt Options
	log *slog.Logger

	mu      sync.Mutex
	slots   map[string]*slot  // by singleton
	tokens  map[string]uint64 // the newest of each singleton that ran here
	leaving bool
	work    sync.WaitGroup // one for each slot
}

// New returns a Host without programs.
func New(o Options) *Host {
	return &Host{opt: o, log: o.Logger, slots: make(map[string]*slot), tokens: make(map[string]uint64)}
}

func refuse(status int, again bool, format string, args ...any) error {
	return &attach.Refusal{Status: status, Again: again, Text: fmt.Sprintf(format, args...)}
}

// enter makes a slot for a program, or says why not. A program that attaches again ends its earlier slot.
func (h *Host) enter(ctx context.Context, a *attach.Attach, s *session) (*slot, error) {
	if what := h.opt.Waiting(); what != "" {
		return nil, refuse(http.StatusServiceUnavailable, true, "this agent is not ready for programs: %s", what)
	}
	if err := h.armed(ctx); err != nil {
		return nil, err
	}
	for {
		next, before, err := h.place(a, s)
		if before == nil {
			return next, err
		}
		before.back(a.Ended)
		select {
		case <-before.over:
		case <-ctx.Done():
			return nil, refuse(http.StatusServiceUnavailable, true, "singleton %s: what was before does not end",
				a.Singleton)
		}
	}
}

// armed waits until this member is armed. Before that it can run nothing, and others would wait for it: a
// restarted agent may be the oldest.
func (h *Host) armed(ctx context.Context) error {
	if !drive.Await(ctx, h.opt.Cluster, func(p downing.Peers) bool {
		return p.Self == "" || p.State != sbr.StateArming
	}) {
		return refuse(http.StatusServiceUnavailable, true,
			"this member does not take part in its cluster yet: it is arming")
	}
	return nil
}

// place enters a slot under its singleton; before is the slot that has to end first.
func (h *Host) place(a *attach.Attach, s *session) (next, before *slot, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	is := h.slots[a.Singleton]
	switch {
	case is != nil && drive.Closed(is.over): // and about to be taken out
	case is != nil && is.attach.Client == a.Client:
		return nil, is, nil
	case is != nil:
		return nil, nil, is.taken()
	}
	switch {
	case h.leaving:
		return nil, nil, refuse(http.StatusServiceUnavailable, true, "this agent leaves its cluster")
	case len(h.slots) >= MaxPrograms:
		return nil, nil, refuse(http.StatusServiceUnavailable,
			true, "%d programs are attached to this agent: no more are", MaxPrograms)
	}
	next, err = h.slot(a, s)
	if err != nil {
		return nil, nil, refuse(http.StatusBadRequest, false, "singleton %s cannot be run: %v", a.Singleton, err)
	}
	h.slots[a.Singleton] = next
	h.work.Go(func() {
		<-next.over
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.slots[a.Singleton] == next {
			delete(h.slots, a.Singleton)
		}
	})
	return next, nil, nil
}

// slot makes a slot. h.mu is held.
func (h *Host) slot(a *attach.Attach, s *session) (*slot, error) {
	cfg, err := h.opt.Configure(a.Singleton)
	if err != nil {
		return nil, err
	}
	next := &slot{attach: *a, session: s, since: time.Now(), log: h.log.With("singleton", a.Singleton, "pid",
		a.PID), begun: make(chan struct{}), returned: make(chan struct{}), over: make(chan struct{})}
	next.started = func(token uint64) { h.keep(a.Singleton, token) }
	cfg.After = h.tokens[a.Singleton]
	cfg.Name, cfg.Endpoint, cfg.StopTimeout, cfg.Logger, cfg.Run = a.Singleton, a.Endpoint,
		time.Duration(a.StopTimeout), h.log, next.run
	d := singleton.DefaultConfig()
	next.patience = time.Duration(cmp.Or(cfg.NumberOfRetries, d.NumberOfRetries)) * cmp.Or(
		cfg.HandOverRetryInterval, d.HandOverRetryInterval)
	most, least := h.promises(&cfg)
	next.most = most
	// it must not come before the next answer
	next.notice = max(0, min(time.Duration(a.StopTimeout), least/2, most-2*attach.PingEvery))
	if next.manager, err = singleton.New(h.opt.Cluster, cfg); err != nil {
		return nil, err
	}
	return next, nil
}

// maxTokens bounds how many singletons are remembered.
const maxTokens = 1024

// keep stores the token of a run, so that a run under a later manager gets a larger token.
func (h *Host) keep(name string, token uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for other := range h.tokens {
		if len(h.tokens) < maxTokens {
			break
		}
		delete(h.tokens, other)
	}
	h.tokens[name] = max(h.tokens[name], token)
}

// promises are how long a run is promised at most, and how long it is certain at least, at any time without a
// fault.
func (h *Host) promises(cfg *singleton.Config) (most, least time.Duration) {
	p := h.opt.Cluster.Config()
	if cfg.UseLease != "" || cfg.Store != nil {
		s := cfg.Lease
		if s == (lease.Settings{}) {
			s = p.Lease
		}
		return attach.MaxValidFor, min(s.Window()-s.Interval(), attach.MaxValidFor)
	}
	removal := cmp.Or(cfg.RemovalMargin, p.Resolver.RemovalMargin())
	most = min(core.PromiseFor(removal), attach.MaxValidFor)
	// trust is renewed each quarter, and what it is renewed from lags behind
	return most, min(core.TrustFor(p.Resolver.StableIn(1), removal)*5/8, most)
}

// all returns the slots by the names of their singletons.
func (h *Host) all() []*slot {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.SortedFunc(maps.Values(h.slots), func(a, b *slot) int {
		return cmp.Compare(a.attach.Singleton, b.attach.Singleton)
	})
}

// Leave hands everything over and waits until nothing runs here any more. When ctx ends first the programs
// are stopped at once; Leave then waits for as long as they may take, and no longer. No program is attached
// from now on.
func (h *Host) Leave(ctx context.Context) {
	h.mu.Lock()
	h.leaving = true
	h.mu.Unlock()
	var work sync.WaitGroup
	for _, s := range h.all() {
		work.Go(func() { s.leave(ctx) })
	}
	work.Wait()
}

// Patience is the longest useful time for Leave to hand over what runs here.
func (h *Host) Patience() (d time.Duration) {
	for _, s := range h.all() {
		d = max(d, s.patience)
	}
	return d
}

// Close ends all connections; their programs are stopped by that. It waits, no longer than ctx lasts, until
// what may be left of them has ended.
func (h *Host) Close(ctx context.Context) {
	h.mu.Lock()
	h.leaving = true
	h.mu.Unlock()
	for _, s := range h.all() {
		s.session.lose(errClosed)
	}
	done := make(chan struct{})
	go func() { h.work.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

var errClosed = errors.New("the agent ends")
