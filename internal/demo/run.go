package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/memnet"
	"github.com/serf-sbr/serf-sbr/downing/memnet/serfnet"
	"github.com/serf-sbr/serf-sbr/internal/sleep"
	"github.com/serf-sbr/serf-sbr/internal/slot/drive"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/lease/memory"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Result is what a demonstration showed.
type Result struct {
	// Passed: exactly one side was up at the end, and nobody who was downed came back.
	Passed bool `json:"passed"`
	// Survivors and Down are names in order.
	Survivors []string `json:"survivors"`
	Down      []string `json:"down"`
	// ResolvedAfter is the time from the cut to the downing of the last loser, DoubleActive how long members
	// of two sides were up after the verdict was written: zero if they never were.
	ResolvedAfter span                  `json:"resolved-after"`
	DoubleActive  span                  `json:"double-active"`
	Lease         downing.LeaseStatus   `json:"lease"`
	Verdict       downing.VerdictStatus `json:"verdict"`
	Events        []Event               `json:"events"`
}

// Run builds a cluster of real Serf nodes, cuts it, waits for the outcome, heals the cut and lets a downed
// member knock. The options are valid. show is called with each line of the timeline as it happens, one at a
// time; it may be nil.
func Run(ctx context.Context, opt Options, show func(Event)) (*Result, error) {
	c := newCluster(opt, newJournal(show))
	defer c.stop()
	for _, step := range []func(context.Context) error{c.startAll, c.cut, c.resolve, c.clear, c.wake, c.knock} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return c.result(), nil
}

// cut cuts the cluster into its sides.
func (c *cluster) cut(context.Context) error {
	var parts []string
	for _, s := range c.sides {
		parts = append(parts, strings.Join(s, " "))
	}
	c.cutAt = time.Now()
	if err := c.net.Partition(c.sides...); err != nil {
		return err
	}
	c.log.world("cut: %s", strings.Join(parts, "  |  "))
	if p := c.opt.Pause; p != "" {
		c.log.world("%s stands still (as under SIGSTOP)", p)
		c.still.Store(true)
		return c.net.Freeze(p)
	}
	return nil
}

// resolve waits until at most one side is up, not counting a paused member, and its members go on.
func (c *cluster) resolve(ctx context.Context) error {
	if err := c.wait(ctx, "only one side is up", func() bool {
		up := 0
		for _, s := range c.sides {
			if slices.ContainsFunc(s, func(n string) bool { return n != c.opt.Pause && !c.isDown(n) }) {
				up++
			}
		}
		return up <= 1
	}); err != nil {
		return err
	}
	return c.wait(ctx, "the survivors go on", func() bool {
		return !slices.ContainsFunc(c.upNames(), func(n string) bool {
			return n != c.opt.Pause && c.nodes[n].provider.Status().State != sbr.StateUp
		})
	})
}

// clear waits until the downed members have ended and the survivors have taken them off their lists. Then it
// heals the cut.
func (c *cluster) clear(ctx context.Context) error {
	err := c.wait(ctx, "the survivors have removed the downed", func() bool {
		for _, n := range c.names {
			if n != c.opt.Pause && c.isDown(n) && !drive.Closed(c.nodes[n].provider.Done()) {
				return false
			}
		}
		for _, up := range c.upNames() {
			for _, m := range c.nodes[up].serf.Members() {
				if up != c.opt.Pause && m.Name != c.opt.Pause && m.Status != serf.StatusLeft && c.isDown(m.Name) {
					return false
				}
			}
		}
		return true
	})
	if err == nil {
		c.log.world("the cut is healed")
		c.net.Heal()
	}
	return err
}

// wake continues the paused member and waits until it knows its standing.
func (c *cluster) wake(ctx context.Context) error {
	p := c.opt.Pause
	if p == "" {
		return nil
	}
	c.log.world("%s continues, the partition is over", p)
	if err := c.net.Thaw(p); err != nil {
		return err
	}
	c.goOn()
	return c.wait(ctx, p+" knows the verdict", func() bool {
		return c.isDown(p) || c.nodes[p].provider.Status().State == sbr.StateUp
	})
}

// knock lets a downed member come back twice: as the incarnation that was downed, and as a new one.
func (c *cluster) knock(ctx context.Context) error {
	var loser string
	for _, n := range c.names {
		if n != c.opt.Pause && c.isDown(n) {
			loser = n
		}
	}
	if loser == "" || len(c.upNames()) == 0 {
		return nil
	}
	ended := func() bool { return drive.Closed(c.nodes[loser].provider.Done()) }
	if err := c.wait(ctx, loser+" has ended", ended); err != nil {
		return err
	}
	c.log.world("%s comes back under its old incarnation", loser)
	s, err := serfnet.Start(c.net, loser, func(conf *serf.Config) {
		conf.Tags = c.nodes[loser].tags
		conf.LogOutput = io.Discard
	})
	if err != nil {
		return err
	}
	joinErr := c.join(s, loser)
	err = c.wait(ctx, loser+" is refused", func() bool { return c.log.refused(loser) })
	end := time.Now().Add(time.Second) // by then gossip of it would have reached all members
	for err == nil && time.Now().Before(end) {
		if err = sleep.For(ctx, poll); c.listed(loser) {
			err = errors.New(loser + " was admitted under its old incarnation")
		}
	}
	_ = s.Shutdown()
	if err != nil {
		return errors.Join(err, joinErr)
	}
	c.log.world("no member lists %s; it comes back as a new incarnation", loser)
	if err := c.start(ctx, loser); err != nil {
		return err
	}
	err = c.wait(ctx, "the new incarnation is admitted", func() bool { return c.listed(loser) })
	if err == nil {
		c.log.world("%s is a member again", loser)
	}
	return err
}

// listed reports whether any survivor lists the node as alive.
func (c *cluster) listed(name string) bool {
	return slices.ContainsFunc(c.upNames(), func(up string) bool {
		return up != name && slices.ContainsFunc(c.nodes[up].serf.Members(), func(m serf.Member) bool {
			return m.Name == name && m.Status == serf.StatusAlive
		})
	})
}

func (c *cluster) upNames() []string { return slices.DeleteFunc(slices.Clone(c.names), c.isDown) }

// result is what was seen from the cut to the end.
func (c *cluster) result() *Result {
	res := &Result{Survivors: []string{}, Down: []string{}}
	for _, n := range c.upNames() {
		if s := c.nodes[n].provider.Status(); s.Verdict.Token >= res.Verdict.Token {
			res.Lease, res.Verdict = s.Lease, s.Verdict
		}
	}
	c.log.conclude(res, c.cutAt, c.sides, c.opt.Pause)
	return res
}

// cluster is the nodes of one demonstration.
type cluster struct {
	opt    Options
	sides  [][]string
	names  []string
	net    *memnet.Network
	memory *memory.Store
	log    *journal
	nodes  map[string]*node
	cutAt  time.Time

	// still says that the member of Options.Pause is paused; then its resolver waits for goesOn, which goOn
	// closes.
	still  atomic.Bool
	goesOn chan struct{}
	goOn   func()
}

type node struct {
	serf     *serf.Serf
	provider *downing.Provider
	tags     map[string]string
}

func newCluster(opt Options, log *journal) *cluster {
	goesOn := make(chan struct{})
	sides, _ := opt.sides() // validated
	return &cluster{
		opt: opt, sides: sides, names: slices.Concat(sides...), log: log,
		net: memnet.New(memnet.Config{Latency: time.Millisecond}), memory: memory.NewStore(),
		nodes: make(map[string]*node), goesOn: goesOn, goOn: sync.OnceFunc(func() { close(goesOn) }),
	}
}

func (c *cluster) store() (lease.Store, error) {
	if c.opt.Kubeconfig == "" {
		return c.memory, nil
	}
	cfg := kubernetes.DefaultConfig()
	cfg.Kubeconfig, cfg.Namespace, cfg.Name = c.opt.Kubeconfig, c.opt.Namespace, kubernetes.Name(c.opt.System)
	return kubernetes.New(cfg)
}

func (c *cluster) config(name string) (downing.Config, error) {
	cfg := downing.DefaultConfig()
	cfg.System = c.opt.System
	cfg.Strategy = c.opt.Strategy
	cfg.Strategies.StaticQuorum.QuorumSize = len(c.names)/2 + 1
	cfg.Strategies.KeepReferee.Address = "n1"
	cfg.Resolver.MinMembers = len(c.names)
	if !c.opt.Defaults {
		for _, t := range shortened(&cfg, c.opt.StableAfter) {
			*t.of = t.here
		}
	}
	cfg.Exit = func(int) {}
	cfg.Logger = slog.New(slog.DiscardHandler)
	cfg.Observe = c.log.occurred
	cfg.Pause = func() {
		if name == c.opt.Pause && c.still.Load() {
			<-c.goesOn
		}
	}
	store, err := c.store()
	cfg.Store = store
	return cfg, err
}

// start starts a member under its own provider and joins it to n1.
func (c *cluster) start(ctx context.Context, name string) error {
	cfg, err := c.config(name)
	if err != nil {
		return err
	}
	p, err := downing.New(cfg)
	if err != nil {
		return err
	}
	n := &node{provider: p}
	n.serf, err = serfnet.Start(c.net, name, func(conf *serf.Config) {
		if !c.opt.Defaults {
			quicken(conf)
		}
		err = p.Prepare(ctx, conf)
		n.tags = maps.Clone(conf.Tags)
	})
	if err != nil {
		return errors.Join(err, p.Stop(ctx))
	}
	if err := p.Start(ctx, n.serf); err != nil {
		return err
	}
	c.nodes[name] = n
	return c.join(n.serf, name)
}

// shortened are the settings that a demonstration would spend waiting, and what they are here.
func shortened(cfg *downing.Config, stableAfter time.Duration) []shortTime {
	r := &cfg.Resolver
	return []shortTime{
		{"stable-after", &r.StableAfter, stableAfter}, {"down-all-when-unstable", &r.DownAllWhenUnstable, 4 * stableAfter},
		{"settle-after", &r.SettleAfter, time.Second}, {"grace", &cfg.Grace, 5 * time.Second}, {"telling", &cfg.TellFor, 2 * time.Second},
	}
}

type shortTime struct {
	name string
	of   *time.Duration
	here time.Duration
}

// times says which ones are not the defaults.
func (c *cluster) times() string {
	usual := downing.DefaultConfig()
	if c.opt.Defaults {
		return fmt.Sprintf("with the default times, stable-after %v among them", usual.Resolver.StableAfter)
	}
	var all []string
	for _, t := range shortened(&usual, c.opt.StableAfter) {
		if t.here != *t.of {
			all = append(all, fmt.Sprintf("%s %v (%v)", t.name, t.here, *t.of))
		}
	}
	return fmt.Sprintf("not the default times: %s, and Serf probes faster; --defaults has the real ones",
		strings.Join(all, ", "))
}

// quicken shortens Serf's suspicion, which on a lone side would take a minute and a half: the demonstration
// ends with a member that comes back, and for that the survivors' Serf must have given up the old one.
func quicken(conf *serf.Config) {
	conf.MemberlistConfig.SuspicionMult = 2
	conf.MemberlistConfig.SuspicionMaxTimeoutMult = 1
	conf.MemberlistConfig.ProbeInterval = 500 * time.Millisecond
	conf.MemberlistConfig.ProbeTimeout = 200 * time.Millisecond
}

// join joins a node to all that are up. By the gossip of one alone a node may hear of another half a minute
// later.
func (c *cluster) join(s *serf.Serf, name string) error {
	var addrs []string
	for _, other := range c.names {
		if n := c.nodes[other]; n == nil || other == name || c.isDown(other) {
			continue
		}
		addr, err := c.net.Addr(other)
		if err != nil {
			return err
		}
		addrs = append(addrs, other+"/"+addr)
	}
	if len(addrs) == 0 {
		return nil
	}
	if _, err := s.Join(addrs, true); err != nil {
		return fmt.Errorf("%s could not join: %w", name, err)
	}
	return nil
}

func (c *cluster) startAll(ctx context.Context) error {
	if _, err := c.store(); err != nil {
		return err
	}
	c.log.world("starting %d Serf nodes, strategy %s", len(c.names), c.opt.Strategy)
	c.log.world("%s", c.times())
	for _, name := range c.names {
		if err := c.start(ctx, name); err != nil {
			return fmt.Errorf("start %s: %w", name, err)
		}
	}
	err := c.wait(ctx, "all members see each other", func() bool {
		for _, n := range c.nodes {
			if s := n.provider.Status(); s.State != sbr.StateUp || len(s.Members) != len(c.names) {
				return false
			}
		}
		return true
	})
	if err == nil {
		c.log.world("all %d see each other", len(c.names))
	}
	return err
}

func (c *cluster) isDown(name string) bool { return drive.Closed(c.nodes[name].provider.Downed()) }

// poll is how often the cluster is looked at.
const poll = 20 * time.Millisecond

// A busy machine may need a multiple of what a step usually takes: after each progress without it the
// timeline says what is waited for, and after patience the demonstration is given up.
const (
	progress = 15 * time.Second
	patience = 5 * time.Minute
)

func (c *cluster) wait(ctx context.Context, what string, ok func() bool) error {
	began := time.Now()
	for next := progress; !ok(); {
		waited := time.Since(began)
		if waited >= patience {
			return fmt.Errorf("waited %v until %s, in vain", patience, what)
		}
		if waited >= next {
			c.log.world("still waiting until %s (%v)", what, next)
			next += progress
		}
		if sleep.For(ctx, poll) != nil {
			return ctx.Err()
		}
	}
	return nil
}

func (c *cluster) stop() {
	c.goOn()
	var wg sync.WaitGroup
	for _, n := range c.nodes {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
			defer cancel()
			_ = n.provider.Stop(ctx)
			_ = n.serf.Shutdown()
		})
	}
	wg.Wait()
}
