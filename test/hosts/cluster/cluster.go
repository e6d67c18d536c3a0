//go:build linux

package cluster

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/sleep"
	"github.com/serf-sbr/serf-sbr/test/hosts/lab"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
	"github.com/serf-sbr/serf-sbr/test/process"
)

// System is the name in every sbr.yaml; the lease is called after it.
const System = "hosts"

const leaseName = System + "-sbr"

// Cluster is a running cluster. Its methods may be called from several goroutines.
type Cluster struct {
	lab       *lab.Lab
	options   Options
	namespace string
	account   *kubetest.Account // nil where the lease is not in Kubernetes
	store     *Store
	keep      *keep
	chain     *Chain
	sampler   *sampler

	mu      sync.Mutex
	members []*Member
}

// Start starts the processes on the hosts of a lab, which must not run anything else; hosts that the lab does
// not have are added. It does not wait: WaitWhole does. The caller stops it before the lab is closed.
func Start(ctx context.Context, l *lab.Lab, store *Store, o Options) (*Cluster, error) {
	c := &Cluster{lab: l, store: store, options: o, namespace: "hosts-" + strings.ToLower(rand.Text()[:8])}
	for _, name := range slices.Concat(o.Hosts, o.Later) {
		if l.Host(name) == nil {
			if _, err := l.AddHost(ctx, name); err != nil {
				return nil, err
			}
		}
	}
	var err error
	if c.keep, err = store.open(ctx, c); err != nil {
		return nil, err
	}
	c.chain = newChain()
	c.chain.follow(c.keep)
	for i, name := range o.Hosts {
		if i > 0 && o.Stagger > 0 {
			time.Sleep(o.Stagger)
		}
		if _, err := c.Boot(name); err != nil {
			c.Stop()
			return nil, err
		}
	}
	c.sampler = c.startSampler()
	return c, nil
}

// Boot starts what runs on a host of Options.Later; Start has booted all others.
func (c *Cluster) Boot(name string) (*Member, error) {
	h := c.lab.Host(name)
	m := &Member{Host: h}
	if !c.options.Own {
		args, err := c.serfArgs(h)
		if err != nil {
			return nil, err
		}
		if m.Serf, err = c.supervise(h, process.Command{Name: "serf", Program: c.options.Serf,
			Args: args}); err != nil {
			return nil, err
		}
	}
	config, err := c.writeConfig(h, configFile, c.store.Kind, c.keep)
	if err != nil {
		return nil, err
	}
	command := process.Command{
		Name: "sbr", Program: c.options.SBR,
		Args: append([]string{"agent", "--config", config, "--log-format", "json"}, c.options.Args...),
		Env:  slices.Concat(os.Environ(), c.options.Env, []string{"STATE_DIRECTORY=" + m.stateFolder()}),
	}
	if s := c.options.Shards; s != nil {
		command = s.command(c, h, config)
	}
	if m.SBR, err = c.supervise(h, command, exitUsage); err != nil {
		return nil, err
	}
	if c.options.Singleton != nil {
		if m.Run, err = c.startRun(h); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members = append(c.members, m)
	return m, nil
}

// exitUsage is the status after which the unit of `sbr agent` does not start it again.
const exitUsage = 2

func (c *Cluster) supervise(h *lab.Host, command process.Command, final ...int) (*lab.Supervisor, error) {
	delay := c.options.RestartAfter
	if delay == 0 {
		delay = -1
	}
	return h.Supervise(command, delay, final...)
}

// Members are the members that were booted, in that order.
func (c *Cluster) Members() []*Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*Member(nil), c.members...)
}

// Member is one by name; nil if there is none.
func (c *Cluster) Member(name string) *Member {
	for _, m := range c.Members() {
		if m.Host.Name() == name {
			return m
		}
	}
	return nil
}

// Incarnations are what runs on the hosts now, by the hosts' names.
func (c *Cluster) Incarnations(ctx context.Context) (map[string]string, error) {
	all := make(map[string]string)
	for _, m := range c.Members() {
		s, err := m.Status(ctx)
		if err != nil {
			return nil, err
		}
		all[m.Host.Name()] = s.Incarnation
	}
	return all, nil
}

// Chain is what was written to the lease.
func (c *Cluster) Chain() *Chain { return c.chain }

// Stop ends the processes and what watches them. Another cluster may be started on the hosts then.
func (c *Cluster) Stop() {
	for _, m := range c.Members() {
		m.SetRestart(false)
	}
	if c.sampler != nil {
		c.sampler.end()
	}
	for _, m := range c.Members() {
		m.Kill()
		if m.Run != nil {
			m.Run.SetRestart(false)
			_ = c.lab.Crash(context.Background(), m.Host.Name()) // the end of the lab, which follows, does the same
		}
	}
	c.chain.end()
}

const pollEvery = 100 * time.Millisecond

// await repeats check until it passes or ctx ends; then its last word is the error.
func await(ctx context.Context, check func() error) error {
	var last error
	for {
		err := check()
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil { // a check that was interrupted has nothing to say
			last = err
		}
		if err := sleep.For(ctx, pollEvery); err != nil {
			return fmt.Errorf("%w (%w)", last, err)
		}
	}
}
