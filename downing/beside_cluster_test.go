package downing_test

import (
	"cmp"
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// stockAgent stands for a Serf agent in another process: a real Serf node of which only what an RPC port
// offers can be had.
type stockAgent struct {
	c    *cluster
	name string

	mu      sync.Mutex
	node    *serf.Serf
	drained chan struct{} // closed by the end of the node's events
	events  downing.AgentEvents
	silent  bool
	refuse  error           // what a removal is answered with
	joins   []time.Duration // for how long each was to be waited for
	opened  bool
	known   map[string]serf.Member // as last told
	lost    map[string]serf.Member // those that an earlier process knew
}

var _ downing.Agent = (*stockAgent)(nil)

// boot starts the agent's process, which remembers nothing of an earlier one, with the tags of its command
// line.
func (a *stockAgent) boot(tags map[string]string, join ...string) {
	a.c.t.Helper()
	ch := make(chan serf.Event, 1024)
	node := a.c.Node(a.name, func(conf *serf.Config) {
		conf.EventCh, conf.Tags = ch, tags
		if a.c.Options.Serf != nil {
			a.c.Options.Serf(a.name, conf)
		}
	})
	drained := make(chan struct{})
	a.mu.Lock()
	a.node, a.drained, a.lost = node, drained, a.known
	a.mu.Unlock()
	go func() {
		defer close(drained)
		a.stream(node, ch)
	}()
	require.NoError(a.c.t, a.c.Join(node, join...))
}

// halt ends the process without a leave.
func (a *stockAgent) halt() {
	a.mu.Lock()
	node, drained := a.node, a.drained
	a.mu.Unlock()
	_ = node.Shutdown()
	<-drained
}

// setSilent makes the agent take requests and not answer them, as a process that was stopped.
func (a *stockAgent) setSilent(silent bool) {
	a.mu.Lock()
	a.silent = silent
	changed := a.events.Changed
	a.mu.Unlock()
	if changed != nil {
		changed()
	}
}

// refuseRemovals makes the agent answer removals with an error; nil: not any more.
func (a *stockAgent) refuseRemovals(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refuse = err
}

// stream passes events on until a while after the shutdown: Serf's goroutines end only once their last event
// was taken.
func (a *stockAgent) stream(node *serf.Serf, ch <-chan serf.Event) {
	for {
		select {
		case e := <-ch:
			a.deliver(e)
		case <-node.ShutdownCh():
			for {
				select {
				case <-ch:
				case <-time.After(time.Second):
					return
				}
			}
		}
	}
}

func (a *stockAgent) deliver(e serf.Event) {
	a.mu.Lock()
	events, deaf := a.events, a.silent || !a.opened
	a.mu.Unlock()
	if deaf {
		return
	}
	if q, ok := e.(*serf.Query); ok {
		events.Query(q.Name, "", q.Payload, q.Respond) // as the RPC port, it does not name the sender
		return
	}
	events.Changed()
}

// answering returns the node if it answers.
func (a *stockAgent) answering() (*serf.Serf, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.silent || a.node.State() == serf.SerfShutdown {
		return nil, downing.ErrAgentTimeout
	}
	return a.node, nil
}

func (a *stockAgent) Open(_ context.Context, events downing.AgentEvents) (serf.Member, error) {
	node, err := a.answering()
	if err != nil {
		return serf.Member{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.events, a.opened = events, true
	return node.LocalMember(), nil
}

func (a *stockAgent) Members() (list []serf.Member, asked time.Time, silence error) {
	_, err := a.answering()
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		return slices.Collect(maps.Values(a.known)), time.Time{}, err
	}
	known := make(map[string]serf.Member)
	for _, m := range a.node.Members() {
		known[m.Name] = m
	}
	for name, m := range a.lost {
		if _, listed := known[name]; !listed && m.Status != serf.StatusLeft {
			m.Status = serf.StatusFailed
			known[name] = m
		}
	}
	a.known = known
	return slices.Collect(maps.Values(known)), time.Now(), nil
}

func (a *stockAgent) Tag(_ context.Context, set map[string]string, remove []string) error {
	node, err := a.answering()
	if err != nil {
		return err
	}
	tags := maps.Clone(node.LocalMember().Tags)
	for _, key := range remove {
		delete(tags, key)
	}
	maps.Copy(tags, set)
	return node.SetTags(tags)
}

func (a *stockAgent) Join(ctx context.Context, name, addr string) error {
	node, err := a.answering()
	if end, ok := ctx.Deadline(); ok {
		a.mu.Lock()
		a.joins = append(a.joins, time.Until(end))
		a.mu.Unlock()
	}
	if err == nil {
		_, err = node.Join([]string{name + "/" + addr}, true)
	}
	return err
}

func (a *stockAgent) Remove(_ context.Context, name string) (bool, error) {
	node, err := a.answering()
	a.mu.Lock()
	err = cmp.Or(err, a.refuse)
	a.mu.Unlock()
	if err != nil {
		return false, err
	}
	for _, m := range node.Members() {
		switch {
		case m.Name != name:
		case m.Status == serf.StatusFailed:
			return true, node.RemoveFailedNode(name)
		default:
			return false, nil
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_, lost := a.lost[name]
	delete(a.lost, name)
	return lost, nil
}

func (a *stockAgent) Query(name string, payload []byte, timeout time.Duration) (
	<-chan serf.NodeResponse, error) {
	node, err := a.answering()
	if err != nil {
		return nil, err
	}
	resp, err := node.Query(name, payload, &serf.QueryParam{Timeout: timeout, RelayFactor: 2})
	if err != nil {
		return nil, err
	}
	return resp.ResponseCh(), nil
}

func (a *stockAgent) Leave(context.Context) error {
	node, err := a.answering()
	if err != nil {
		return err
	}
	if err := node.Leave(); err != nil {
		return err
	}
	return node.Shutdown()
}

func (a *stockAgent) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.opened = false
}

// probes is the prober of one member. It reaches the members that the network lets it reach, if a prober
// announced that incarnation.
type probes struct {
	b     *besides
	agent *stockAgent
}

func (p *probes) Announce(id sbr.ID) string {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	p.b.announced[p.agent.name] = id
	return "a"
}

func (p *probes) Ping(_ context.Context, t downing.Target, timeout time.Duration) bool {
	p.b.mu.Lock()
	there := p.b.announced[t.Name] == t.ID
	p.b.mu.Unlock()
	addr, err := net.ResolveUDPAddr("udp", t.Addr)
	if err != nil || !there {
		time.Sleep(timeout)
		return false
	}
	p.agent.mu.Lock()
	node := p.agent.node
	p.agent.mu.Unlock()
	rtt, err := node.Memberlist().Ping(t.Name, addr)
	return err == nil && rtt <= timeout
}

// besides is a cluster of stock agents, each with a provider beside it.
type besides struct {
	*cluster
	agents map[string]*stockAgent

	mu        sync.Mutex
	announced map[string]sbr.ID
}

// beside runs a test in virtual time, with n agents whose providers are armed.
func beside(t *testing.T, n int, config func(name string, c *downing.Config),
	f func(t *testing.T, b *besides)) {
	synctest.Test(t, func(t *testing.T) {
		b := &besides{cluster: newCluster(t, config), agents: make(map[string]*stockAgent),
			announced: make(map[string]sbr.ID)}
		defer b.stop()
		for i, name := range clustertest.Names(n) {
			b.boot(name, clustertest.Names(min(i, 1))...)
		}
		b.Whole(n)
		f(t, b)
	})
}

// boot starts an agent and a provider beside it.
func (b *besides) boot(name string, join ...string) *clustertest.Member {
	b.t.Helper()
	b.agent(name, map[string]string{"team": "blue"}, join...)
	return b.protect(name)
}

// agent starts an agent that has these tags, without a provider.
func (b *besides) agent(name string, tags map[string]string, join ...string) *stockAgent {
	b.t.Helper()
	a := &stockAgent{c: b.cluster, name: name}
	b.agents[name] = a
	a.boot(tags, join...)
	return a
}

// protect starts a provider beside an agent that runs; an earlier one has stopped.
func (b *besides) protect(name string, change ...func(*downing.Config)) *clustertest.Member {
	b.t.Helper()
	m, a := b.NewMember(name, change...), b.agents[name]
	m.Serf = a.node
	require.NoError(b.t, m.Provider.Beside(b.t.Context(), a, &probes{b: b, agent: a}))
	return m
}

func (b *besides) state(name string) sbr.State { return b.provider(name).Status().State }

// stop ends everything and lets Serf's background work run out.
func (b *besides) stop() {
	for _, m := range b.Members() {
		require.NoError(b.t, m.Stop())
	}
	for _, a := range b.agents {
		a.halt()
	}
	clustertest.Drain()
}
