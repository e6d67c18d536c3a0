package demo

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/memnet/serfnet"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// Result is what a demonstration showed.
type Result struct {
	// Passed: exactly one side was up at the end, and nobody who was downed came back.
	Passed bool
	// Survivors and Down are names in order.
	Survivors, Down []string
	// ResolvedAfter is the time from the cut to the downing of the last loser.
	ResolvedAfter time.Duration
	// DoubleActive is how long members of two sides were up after the verdict was written, zero if they never were.
	DoubleActive time.Duration
	// UsesLease says whether the strategy asks for the lease.
	UsesLease bool
	Lease     downing.LeaseStatus
	Verdict   downing.VerdictStatus
	Events    []Event
}

// Run builds a cluster of real Serf nodes, cuts it, waits for the outcome, heals the cut and lets a downed member knock.
// show is called with each line of the timeline as it happens, one at a time; it may be nil.
func Run(ctx context.Context, opt Options, show func(Event)) (*Result, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	j := newJournal(show)
	c := newCluster(opt, j)
	defer c.stop()
	j.world("starting %d Serf nodes, strategy %s, stable-after %v (20s by default)", opt.Nodes, opt.Strategy, opt.StableAfter)
	if err := c.startAll(ctx); err != nil {
		return nil, err
	}
	j.world("all %d see each other", opt.Nodes)
	if err := c.cut(); err != nil {
		return nil, err
	}
	if err := c.resolve(ctx); err != nil {
		return nil, err
	}
	res := c.outcome()
	if err := c.wait(ctx, 20*time.Second, "the survivors did not remove the downed", c.removed); err != nil {
		return nil, err
	}
	j.world("the cut is healed")
	c.net.Heal()
	if err := c.wake(ctx); err != nil {
		return nil, err
	}
	if err := c.knock(ctx); err != nil {
		return nil, err
	}
	c.conclude(res)
	j.close()
	return res, nil
}

func (c *cluster) cut() error {
	var parts []string
	for _, s := range c.opt.sides() {
		parts = append(parts, strings.Join(s, " "))
	}
	c.log.cutNow()
	if err := c.net.Partition(c.opt.sides()...); err != nil {
		return err
	}
	c.log.world("cut: %s", strings.Join(parts, "  |  "))
	if p := c.opt.Pause; p != "" {
		c.log.world("%s stands still (as under SIGSTOP)", p)
		c.nodes[p].gate.set(true)
		return c.net.Freeze(p)
	}
	return nil
}

// settled reports whether at most one side is up, not counting a member that stands still.
func (c *cluster) settled() bool {
	up := 0
	for _, s := range c.opt.sides() {
		if slices.ContainsFunc(s, func(n string) bool { return n != c.opt.Pause && !c.isDown(n) }) {
			up++
		}
	}
	return up <= 1
}

func (c *cluster) resolve(ctx context.Context) error {
	limit := 4*c.opt.StableAfter + 60*time.Second
	if err := c.wait(ctx, limit, "two sides are still up", c.settled); err != nil {
		return err
	}
	return c.wait(ctx, limit, "the survivors did not resume", func() bool {
		for name, n := range c.nodes {
			if name == c.opt.Pause || c.isDown(name) {
				continue
			}
			if s := n.provider.Status(); s.State != sbr.StateUp {
				return false
			}
		}
		return true
	})
}

// removed reports whether the downed members have ended and the survivors have taken them off their lists.
func (c *cluster) removed() bool {
	for _, n := range c.opt.names() {
		if n != c.opt.Pause && c.isDown(n) && !c.isDone(n) {
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
}

// wake continues the member that stood still and waits until it knows its fate.
func (c *cluster) wake(ctx context.Context) error {
	p := c.opt.Pause
	if p == "" {
		return nil
	}
	c.log.world("%s continues, the partition is over", p)
	if err := c.net.Thaw(p); err != nil {
		return err
	}
	c.nodes[p].gate.set(false)
	return c.wait(ctx, 20*time.Second, p+" did not learn its fate", func() bool {
		return c.isDown(p) || c.nodes[p].provider.Status().State == sbr.StateUp
	})
}

// knock lets a downed member come back twice: as the incarnation that was downed, and as a new one.
func (c *cluster) knock(ctx context.Context) error {
	var loser string
	for _, n := range c.opt.names() {
		if n != c.opt.Pause && c.isDown(n) {
			loser = n
		}
	}
	if loser == "" || len(c.upNames()) == 0 {
		return nil
	}
	if err := c.wait(ctx, 20*time.Second, loser+" did not shut down", func() bool { return c.isDone(loser) }); err != nil {
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
	err = c.wait(ctx, 10*time.Second, loser+" was not refused", func() bool { return c.log.refused(loser) })
	if err == nil {
		// Gossip of it would have reached everybody by now.
		err = c.stay(ctx, time.Second, loser+" was admitted under its old incarnation", func() bool { return !c.listed(loser) })
	}
	_ = s.Shutdown()
	if err != nil {
		return errors.Join(err, joinErr)
	}
	c.log.world("%s is a member of nobody; it comes back as a new incarnation", loser)
	if err := c.start(ctx, loser); err != nil {
		return err
	}
	if err := c.wait(ctx, 10*time.Second, "the new incarnation was not admitted", func() bool { return c.listed(loser) }); err != nil {
		return err
	}
	c.log.world("%s is a member again", loser)
	return nil
}

// listed reports whether any survivor lists the node as alive.
func (c *cluster) listed(name string) bool {
	for _, up := range c.upNames() {
		if up == name {
			continue
		}
		for _, m := range c.nodes[up].serf.Members() {
			if m.Name == name && m.Status == serf.StatusAlive {
				return true
			}
		}
	}
	return false
}

func (c *cluster) upNames() (names []string) {
	for _, n := range c.opt.names() {
		if !c.isDown(n) {
			names = append(names, n)
		}
	}
	return names
}

// outcome is taken when the partition is resolved, before the heal.
func (c *cluster) outcome() *Result {
	res := &Result{Passed: true}
	cut, granted := c.log.times()
	var last time.Time
	for _, n := range c.opt.names() {
		if n != c.opt.Pause && c.isDown(n) {
			if at := c.log.downed(n); at.After(last) {
				last = at
			}
		}
	}
	if !last.IsZero() {
		res.ResolvedAfter = last.Sub(cut)
		if !granted.IsZero() {
			res.DoubleActive = max(last.Sub(granted), 0)
		}
	}
	return res
}

func (c *cluster) conclude(res *Result) {
	strategy, err := strategies.New(c.opt.Strategy, strategies.Settings{StaticQuorum: strategies.StaticQuorum{QuorumSize: 1}, KeepReferee: strategies.KeepReferee{Address: "n1"}})
	res.UsesLease = err == nil && sbr.NeedsLease(strategy)
	sides := 0
	for _, s := range c.opt.sides() {
		var up, down []string
		for _, n := range s {
			if c.log.downed(n).IsZero() {
				up = append(up, n)
			} else {
				down = append(down, n)
			}
		}
		res.Survivors, res.Down = append(res.Survivors, up...), append(res.Down, down...)
		if len(up) > 0 {
			sides++
		}
	}
	for _, n := range c.upNames() {
		if s := c.nodes[n].provider.Status(); s.Verdict.Token >= res.Verdict.Token {
			res.Lease, res.Verdict = s.Lease, s.Verdict
		}
	}
	res.Passed = res.Passed && sides == 1
	res.Events = c.log.all()
}

func (j *journal) refused(name string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.events {
		if e.Kind == downing.OccurredRefused && strings.HasPrefix(e.Detail, name+" ") {
			return true
		}
	}
	return false
}
