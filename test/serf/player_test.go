package serf_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/memnet"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

const (
	// storeDelay is what a request to the lease store takes, there and back: the model's, without its jitter.
	storeDelay = 15 * time.Millisecond
	// sampleEvery is how often the members' views are looked at.
	sampleEvery = 250 * time.Millisecond
	// windUp is more than the longest background work of Serf after a Shutdown.
	windUp = 2 * time.Minute
)

// player plays one scenario over real Serf. It lives in a synctest bubble.
type player struct {
	s     *scenario.Scenario
	net   *memnet.Network
	store *leasetest.Memory
	top   *topology
	names *scenario.Names
	nodes []*node

	backups map[time.Duration]lease.Record // what the store held, for steps that restore it

	// hears of everything that happens, may be nil; it is called with mu held
	heard func(*process, downing.Occurrence)

	ctx        context.Context
	began      time.Time
	background sync.WaitGroup
	agenda     agenda

	// procs are all that were ever started. They, and the gates of nodes, are changed by the goroutine that
	// plays alone.
	procs []*process
	moved time.Duration // when a view of the cluster, or a part in it, changed last, as far as sampled

	mu       sync.Mutex
	rng      *rand.Rand
	errs     []error
	seen     map[sbr.ID]uint64 // the token that each incarnation had read when it started
	promises promises
	slots    map[string]*slot             // what singletons and shards have run, by name
	leases   map[string]*leasetest.Memory // the records of their leases, by name
}

// outcome is what a run came to: its Result as far as it can be seen from outside of the providers, and the
// promises that were broken.
type outcome struct {
	scenario.Result
	broken []string
	err    error
}

// play runs a scenario in virtual time. Each of also may put something more on the agenda.
func play(t *testing.T, s *scenario.Scenario, seed uint64, also ...func(*player)) (o outcome) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p := newPlayer(ctx, s, seed)
		p.report(p.form())
		for _, f := range also {
			f(p)
		}
		p.run()
		o = p.outcome()
		p.mu.Lock()
		p.heard = nil
		p.mu.Unlock()
		cancel()
		p.end()
		o.err = errors.Join(p.errs...)
	})
	return o
}

func newPlayer(ctx context.Context, s *scenario.Scenario, seed uint64) *player {
	s = s.Drawn(seed) // the times that the model plays
	n := &s.Cluster.Network
	p := &player{
		s: s, ctx: ctx, store: leasetest.NewMemory(), names: s.Names(),
		seen: make(map[sbr.ID]uint64), backups: make(map[time.Duration]lease.Record),
		slots: make(map[string]*slot), leases: make(map[string]*leasetest.Memory),
		rng: rand.New(rand.NewPCG(seed, 0x5e4f)),
	}
	p.promises.watch(p)
	var names []string
	for i, m := range p.names.Nodes {
		n := &node{Node: m, index: i, addr: address(i + 1), view: p.store.View(m.Name)}
		n.views = append(n.views, n.view)
		n.suffer(n.view)
		p.nodes, names = append(p.nodes, n), append(names, m.Name)
	}
	p.top = newTopology(memnet.Config{Latency: n.Latency, Jitter: n.Jitter, Seed: seed}, names)
	p.net = p.top.net
	return p
}

func (p *player) node(name string) *node { return p.nodes[p.names.Index[name]] }

func (p *player) draw(upTo time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Duration(p.rng.Int64N(int64(upTo))) + 1
}

// report keeps an error of the run itself; that the run was over before something ended is none.
func (p *player) report(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errs = append(p.errs, err)
}

// form brings the cluster of the file up, oldest first, and sets the clock of the file to the moment at which
// all know all.
func (p *player) form() error {
	for _, n := range p.nodes { // addresses, and places in partitions, also of those that start later
		socket, err := p.net.TransportAt(n.Name, n.addr)
		if err != nil {
			return err
		}
		if err := socket.Shutdown(); err != nil {
			return err
		}
	}
	start := p.nodes[:p.names.Start]
	for _, n := range start {
		proc := p.newProcess(n)
		conf, err := proc.prepare()
		if err != nil {
			return err
		}
		if err := proc.create(conf); err != nil {
			return err
		}
		if proc.index > 0 {
			if _, err := proc.serf.Join([]string{p.nodes[0].proc.at()}, true); err != nil {
				return err
			}
		}
		if err := proc.takePart(); err != nil {
			return err
		}
		// nodes that start at the same moment would do everything at the same moment
		time.Sleep(p.draw(300 * time.Millisecond))
	}
	for end := time.Now().Add(2 * time.Minute); !p.whole(len(start)); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			return errors.New("the cluster does not form")
		}
	}
	p.began = time.Now()
	return p.top.lose(p.s.Cluster.Network.Loss)
}

// whole reports whether each of n nodes sees all as alive, in Serf and in its provider.
func (p *player) whole(n int) bool {
	return !slices.ContainsFunc(p.procs, func(proc *process) bool {
		return p.alive(proc) != n || len(proc.provider.Status().Members) != n
	})
}

// alive counts the members that Serf calls alive.
func (p *player) alive(proc *process) (n int) {
	for _, m := range proc.serf.Members() {
		if m.Status == serf.StatusAlive {
			n++
		}
	}
	return n
}

// now is the time of the file.
func (p *player) now() time.Duration { return time.Since(p.began) }

// after puts something on the agenda; the goroutine that plays does it.
func (p *player) after(d time.Duration, do func() error) { p.agenda.add(p.now()+d, do) }

// run plays the steps and looks at the cluster all the time.
func (p *player) run() {
	if len(p.errs) > 0 {
		return // the cluster did not form
	}
	p.backUp()
	for i := range p.s.Steps {
		st := &p.s.Steps[i]
		p.agenda.add(st.At.From, func() error {
			if err := p.step(i+1, st); err != nil {
				return fmt.Errorf("steps[%d]: %w", i, err)
			}
			return nil
		})
	}
	for next := time.Duration(0); next <= p.s.RunFor; next += sampleEvery {
		for p.agenda.due(next) {
			at, do := p.agenda.take()
			time.Sleep(at - p.now())
			p.report(do())
		}
		time.Sleep(next - p.now())
		synctest.Wait() // whatever happens at this moment has happened
		p.sample()
		p.watchSlots()
	}
}

// end takes everything down.
func (p *player) end() {
	for _, proc := range p.procs {
		proc.gate.resume()
		p.report(proc.bury())
		if proc.socket != nil {
			p.report(proc.socket.Shutdown()) // of a Serf that could not be created
		}
	}
	p.background.Wait()
	time.Sleep(windUp)
	synctest.Wait()
}

// agenda is what is to be done, by time; what was put there first is done first.
type agenda []entry

type entry struct {
	at time.Duration
	do func() error
}

func (a *agenda) add(at time.Duration, do func() error) {
	i := len(*a)
	for i > 0 && (*a)[i-1].at > at {
		i--
	}
	*a = slices.Insert(*a, i, entry{at, do})
}

func (a *agenda) due(at time.Duration) bool { return len(*a) > 0 && (*a)[0].at <= at }

func (a *agenda) take() (time.Duration, func() error) {
	e := (*a)[0]
	*a = (*a)[1:]
	return e.at, e.do
}
