package programs_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/internal/agent/programs"
	"github.com/serf-sbr/serf-sbr/internal/attach"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/internal/linear"
	turns "github.com/serf-sbr/serf-sbr/internal/program"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/singleton"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stopTimeout is that of the programs in these tests.
const stopTimeout = 2 * time.Second

// agent is what an agent has for its programs, on one member.
type agent struct {
	t        *testing.T
	name     string
	host     *programs.Host
	listener *listener
	server   *http.Server
	http     *http.Client
}

// crew are agents on the members of a cluster.
type crew struct {
	*clustertest.Cluster
	t       *testing.T
	agents  map[string]*agent
	clients []*program
}

// with runs a test on a formed cluster of n members with an agent on each.
func with(t *testing.T, n int, o clustertest.Options, change func(name string, c *singleton.Config),
	test func(t *testing.T, c *crew)) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	if o.Config == nil {
		o.Config = clustertest.Quick
	}
	clustertest.Virtual(t, o, func(t *testing.T, cl *clustertest.Cluster) {
		c := &crew{Cluster: cl, t: t, agents: make(map[string]*agent)}
		c.Form(n)
		for i := 1; i <= n; i++ {
			c.agent(clustertest.Name(i), change)
		}
		defer c.end()
		test(t, c)
	})
}

func (c *crew) agent(name string, change func(string, *singleton.Config)) *agent {
	return c.agentOf(name, c.Member(name).Provider, change)
}

func (c *crew) agentOf(name string, member singleton.Cluster, change func(string, *singleton.Config)) *agent {
	a := &agent{t: c.t, name: name, listener: &listener{conns: make(chan net.Conn), done: make(chan struct{}),
		peer: "127.0.0.1:41000"}}
	a.host = programs.New(programs.Options{Cluster: member, Logger: clustertest.Logger(name),
		Waiting: func() string { return "" }, Configure: func(string) (singleton.Config, error) {
			cfg := singleton.DefaultConfig()
			if change != nil {
				change(name, &cfg)
			}
			return cfg, nil
		}})
	a.server = &http.Server{Handler: a.host.Run(), ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second}
	go func() { _ = a.server.Serve(a.listener) }()
	a.http = &http.Client{Transport: &http.Transport{DialContext: a.listener.dial, DisableKeepAlives: true}}
	c.agents[name] = a
	return a
}

func (c *crew) end() {
	for _, p := range c.clients {
		p.end()
	}
	for _, a := range c.agents {
		a.listener.gate.Open()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		a.host.Close(ctx)
		require.NoError(c.t, ctx.Err(), "something of %s is left", a.name)
		cancel()
		a.listener.cut()
		_ = a.server.Close()
	}
}

// program is a program of `sbr run`, without the program: it obeys as package program does.
type program struct {
	t     *testing.T
	name  string
	agent *attach.Agent
	// takes is how long it takes to end when it is told to; state is what it leaves.
	takes time.Duration
	state string

	leave  chan struct{} // a signal
	left   bool          // it has come
	cancel context.CancelFunc
	done   chan struct{}
	err    error

	mu   sync.Mutex
	runs []runOf
}

// runOf is one run of a program.
type runOf struct {
	member     string
	token      uint64
	facts      map[string]string
	state      string
	start, end time.Time
	told       time.Time
	because    string
}

// starts attaches a program that is the first to run. waits attaches a program that has to wait, and lets it
// become known.
func (c *crew) starts(name string) *program {
	p := c.attach(name, nil)
	c.runs(p, 30*time.Second)
	return p
}

func (c *crew) waits(name string) *program {
	p := c.attach(name, nil)
	time.Sleep(10 * time.Second)
	return p
}

// attach starts a program next to the agent of a member.
func (c *crew) attach(name string, change func(p *program, o *attach.AgentOptions)) *program {
	p := &program{t: c.t, name: name, takes: 100 * time.Millisecond, state: "of " + name,
		done: make(chan struct{}), leave: make(chan struct{}, 1)}
	o := attach.AgentOptions{URL: "http://agent", HTTP: c.agents[name].http, Singleton: "backup",
		StopTimeout: stopTimeout, Lock: c.t.TempDir() + "/lock", Log: clustertest.Logger(name + " program")}
	if change != nil {
		change(p, &o)
	}
	p.agent = attach.OverAgent(o)
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() {
		defer close(p.done)
		p.err = p.loop(ctx)
		p.agent.Close()
	}()
	c.clients = append(c.clients, p)
	return p
}

func (p *program) end() {
	p.cancel()
	<-p.done
}

func (p *program) loop(ctx context.Context) error {
	for {
		t, err := p.agent.Next(ctx)
		if err != nil {
			return err
		}
		p.begins(t)
		life := ctx
		if ctx.Err() != nil { // the signal came while it waited
			life, p.left = context.WithoutCancel(ctx), true
			t.Leave()
		}
		why := p.supervise(life, t)
		if path := p.last().facts["SBR_STATE_NEXT"]; p.state != "" {
			require.NoError(p.t, os.WriteFile(path, []byte(p.state), 0o600))
		}
		p.ends(why)
		t.Done(turns.End{Again: ctx.Err() == nil && !p.left, Why: why})
		if p.left {
			return nil
		}
	}
}

// supervise is the life of the program; it returns why it has ended.
func (p *program) supervise(ctx context.Context, t *turns.Turn) (why string) {
	var dead <-chan time.Time
	told := func(because string) {
		if dead == nil {
			why, dead = because, time.After(min(p.takes, stopTimeout))
			p.mu.Lock()
			p.runs[len(p.runs)-1].told = time.Now()
			p.mu.Unlock()
		}
	}
	stop, ended := t.Stop.Done(), ctx.Done()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			stop = nil
			if t.Over.Err() == nil { // as package program: then there is no time for peace
				told(context.Cause(t.Stop).Error())
			}
		case <-ended:
			ended = nil
			told("the test ends")
		case <-p.leave:
			p.left = true
			t.Leave()
		case <-t.Over.Done():
			return "over: " + context.Cause(t.Over).Error()
		case <-dead:
			return why
		case <-tick.C:
			switch left := time.Until(t.Valid()); {
			case left <= 0:
				return "killed at the end of its time"
			case left <= t.Notice:
				told("its time is nearly over")
			}
		}
	}
}

func (p *program) begins(t *turns.Turn) {
	facts := make(map[string]string)
	for _, f := range t.Facts {
		name, value, _ := strings.Cut(f, "=")
		facts[name] = value
	}
	state, err := os.ReadFile(facts["SBR_STATE"])
	require.NoError(p.t, err)
	require.NotNil(p.t, t.Lock)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs = append(p.runs, runOf{member: p.name, token: t.Token, facts: facts, state: string(state),
		start: time.Now()})
}

func (p *program) ends(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &p.runs[len(p.runs)-1]
	r.end, r.because = time.Now(), why
}

// last is the newest run; the zero runOf if there was none.
func (p *program) last() (r runOf) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.runs) > 0 {
		r = p.runs[len(p.runs)-1]
	}
	return r
}

// count is how many runs there were.
func (p *program) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.runs)
}

func (p *program) running() bool { r := p.last(); return r.token != 0 && r.end.IsZero() }

func (c *crew) runs(p *program, within time.Duration) {
	c.t.Helper()
	c.Eventually(within, "it does not run on "+p.name, p.running)
}

// alone fails the test if two runs of the programs overlap, or tokens do not grow from run to run.
func (c *crew) alone() {
	c.t.Helper()
	var all []runOf
	for _, p := range c.clients {
		p.mu.Lock()
		all = append(all, p.runs...)
		p.mu.Unlock()
	}
	for i, a := range all {
		for _, b := range all[i+1:] {
			first, second := a, b
			if b.start.Before(a.start) {
				first, second = b, a
			}
			require.False(c.t, first.end.IsZero(), "%+v has not ended before %+v", first, second)
			require.False(c.t, second.start.Before(first.end), "%+v overlaps %+v", first, second)
			if first.member == second.member { // it may have kept the lease
				require.GreaterOrEqual(c.t, second.token, first.token)
			} else {
				require.Greater(c.t, second.token, first.token)
			}
		}
	}
}

// list is what the agent shows at /singletons.
func (a *agent) list(t *testing.T) string {
	text, err := json.MarshalIndent(a.host.Singletons(), "", "  ")
	require.NoError(t, err)
	return string(text)
}

// take takes the lease of the singleton away.
func take(t *testing.T, stores *leasetest.Memory) {
	operator, err := lease.New(stores.View("operator"), "operator", lease.DefaultSettings(), lease.Options{})
	require.NoError(t, err)
	t.Cleanup(operator.Close)
	require.Equal(t, sbr.Granted,
		linear.AnswerOf(operator.Acquire(t.Context(), lease.Proposal{Override: true})).Kind)
}
