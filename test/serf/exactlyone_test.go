package serf_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
	"github.com/serf-sbr/serf-sbr/singleton"
)

const (
	// shardsCount and stopTakes are what the scenario file means by no count and no stop-takes.
	shardsCount = 8
	stopTakes   = time.Second
	// handOverWithin bounds how long a member that leaves waits until others have taken over.
	handOverWithin = time.Minute
)

// slot is a singleton, or one shard: what runs on one member at a time. Its runs are kept in the order of
// their starts.
type slot struct {
	name   string
	leased bool
	runs   []*run
}

// run is one run of a slot. It is over once its function has returned.
type run struct {
	*singleton.Run
	proc *process
	over bool
}

// manager is what singletons and shards have in common.
type manager interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
}

// open starts the singletons and shards of the file on a process that has joined.
func (proc *process) open() error {
	for i := range proc.p.s.Cluster.Singletons {
		x := &proc.p.s.Cluster.Singletons[i]
		if err := proc.host(func() (manager, error) { return singleton.New(proc.provider, proc.singleton(x)) },
			0); err != nil {
			return fmt.Errorf("%s: singleton %s: %w", proc.Name, x.Name, err)
		}
	}
	for i := range proc.p.s.Cluster.Shards {
		x := &proc.p.s.Cluster.Shards[i]
		if err := proc.host(func() (manager, error) { return sharding.New(proc.provider, proc.sharding(x)) },
			x.ReopenedAfter); err != nil {
			return fmt.Errorf("%s: shards %s: %w", proc.Name, x.Type, err)
		}
	}
	return nil
}

// host starts a manager. With every, the manager is stopped after about that time, and another started in its
// place, until the process leaves.
func (proc *process) host(create func() (manager, error), every time.Duration) error {
	m, err := create()
	if err != nil {
		return err
	}
	if err := m.Start(proc.ctx); err != nil {
		return err
	}
	proc.mu.Lock()
	proc.managers = append(proc.managers, m)
	place := len(proc.managers) - 1
	proc.mu.Unlock()
	if every == 0 {
		return nil
	}
	proc.p.background.Go(func() {
		for proc.sleep(every/2 + proc.p.draw(every)); proc.up(); proc.sleep(every/2 + proc.p.draw(every)) {
			proc.mu.Lock()
			m := proc.managers[place]
			proc.mu.Unlock()
			next, err := proc.reopen(m, create)
			if err != nil {
				proc.p.report(err)
				return
			}
			proc.mu.Lock()
			proc.managers[place] = next
			proc.mu.Unlock()
		}
	})
	return nil
}

func (proc *process) reopen(m manager, create func() (manager, error)) (manager, error) {
	if err := m.Stop(proc.ctx); err != nil {
		return m, err
	}
	next, err := create()
	if err != nil || !proc.up() {
		return m, err
	}
	if err := next.Start(proc.ctx); err != nil {
		return next, err
	}
	return next, nil
}

// closeManagers hands over what runs here. Once ctx has ended it only ends it.
func (proc *process) closeManagers(ctx context.Context) {
	proc.mu.Lock()
	all := slices.Clone(proc.managers)
	proc.mu.Unlock()
	for _, m := range all {
		_ = m.Stop(ctx) // what is left ends with the process
	}
}

func (proc *process) singleton(x *scenario.Singleton) singleton.Config {
	c := singleton.DefaultConfig()
	c.Name, c.Role, c.RemovalMargin, c.Pause = x.Name, x.Role, x.RemovalMargin, func() { proc.gate.pass() }
	c.Logger = slog.New(slog.DiscardHandler)
	setTimes(&x.SlotRules, &c.HandOverRetryInterval, &c.NumberOfRetries, &c.LeaseRetryInterval)
	if x.UseLease {
		c.Store = proc.lease("singleton " + x.Name)
	}
	c.Run = func(ctx context.Context, r *singleton.Run) error {
		return proc.work(ctx, proc.p.slot(x.Name, bool(x.UseLease)), r, &x.SlotRules)
	}
	return c
}

func (proc *process) sharding(x *scenario.Shards) sharding.Config {
	c := sharding.DefaultConfig()
	c.Type, c.Role, c.RemovalMargin, c.Pause = x.Type, x.Role, x.RemovalMargin, func() { proc.gate.pass() }
	c.Logger = slog.New(slog.DiscardHandler)
	for i := range shardsOf(x) {
		c.Shards = append(c.Shards, strconv.Itoa(i))
	}
	each := &x.SlotRules
	setTimes(each, &c.HandOverRetryInterval, &c.NumberOfRetries, &c.LeaseRetryInterval)
	if x.UseLease {
		c.Store = func(name string) (lease.Store, error) { return proc.lease(name), nil }
	}
	c.Run = func(ctx context.Context, s *sharding.Shard) error {
		return proc.work(ctx, proc.p.slot(x.Type+"/"+s.Name(), bool(x.UseLease)), s.Run, each)
	}
	return c
}

func shardsOf(x *scenario.Shards) int {
	if x.Count == 0 {
		return shardsCount
	}
	return x.Count
}

// setTimes overwrites defaults by what the file says.
func setTimes(x *scenario.SlotRules, retry *time.Duration, retries *int, lease *time.Duration) {
	if x.HandOverRetryInterval > 0 {
		*retry = x.HandOverRetryInterval
	}
	if x.NumberOfRetries > 0 {
		*retries = x.NumberOfRetries
	}
	if x.LeaseRetryInterval > 0 {
		*lease = x.LeaseRetryInterval
	}
}

// lease is the process's way to the record of a lease of that name, with the faults from which its node
// suffers.
func (proc *process) lease(name string) lease.Store {
	p := proc.p
	p.mu.Lock()
	defer p.mu.Unlock()
	store := p.leases[name]
	if store == nil {
		store = leasetest.NewMemory()
		p.leases[name] = store
	}
	view := store.View(proc.Name)
	if !slices.Contains(proc.views, view) {
		proc.views = append(proc.views, view)
		proc.suffer(view)
	}
	return &connection{view: view, gate: &proc.gate}
}

// slot is what the runs of that name belong to.
func (p *player) slot(name string, leased bool) *slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.slots[name]
	if s == nil {
		s = &slot{name: name, leased: leased}
		p.slots[name] = s
	}
	return s
}

// work is the function that a singleton or a shard runs: it does nothing until it has to stop, or ends by
// itself, and hands its token over.
func (proc *process) work(ctx context.Context, s *slot, r *singleton.Run, x *scenario.SlotRules) error {
	this := proc.p.starts(proc, s, r)
	defer proc.p.ends(this)
	byItself := make(<-chan time.Time)
	if x.EndsAfter > 0 {
		t := time.NewTimer(x.EndsAfter/2 + proc.p.draw(x.EndsAfter))
		defer t.Stop()
		byItself = t.C
	}
	select {
	case <-byItself:
		return nil
	case <-proc.ctx.Done():
		return nil
	case <-ctx.Done():
	}
	longest := x.StopTakes
	if longest == 0 {
		longest = stopTakes
	}
	proc.sleep(proc.p.draw(longest))
	return r.HandOver(strconv.AppendUint(nil, r.Token(), 10))
}

// starts checks what must be true whenever a run starts: no downed process starts one (X5), and with a lease
// its token is the largest (X2).
func (p *player) starts(proc *process, s *slot, r *singleton.Run) *run {
	this := &run{Run: r, proc: proc}
	downed := proc.wasDowned()
	p.mu.Lock()
	defer p.mu.Unlock()
	if downed {
		p.violate("X5", "%s starts a run of %s although it was downed", proc.id, s.name)
	}
	for _, o := range s.runs {
		if s.leased && r.Token() <= o.Token() && (o.proc != proc || r.Token() < o.Token()) {
			p.violate("X2", "a run of %s on %s has the token %d, and one on %s had %d", s.name, proc.id, r.Token(),
				o.proc.id, o.Token())
		}
	}
	s.runs = append(s.runs, this)
	p.alone(s)
	return this
}

func (p *player) ends(r *run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.over = true
}

// works reports whether the run is active: its process runs, and the run's own Check says yes.
func (r *run) works() bool {
	return !r.over && !r.proc.gate.paused() && r.proc.running() && r.Check() == nil
}

// alone is promise X1: no two runs of a slot are active at once. With a lease there is no exception. Without
// one there is none until a verdict leaves one of their members out: from then on the margin decides, and the
// model counts the runs that outlive it. It is called with p.mu held.
func (p *player) alone(s *slot) {
	var active []*run
	for _, r := range s.runs {
		if r.works() {
			active = append(active, r)
		}
	}
	needsLease := p.s.Cluster.SplitBrainResolver.ActiveStrategy == "lease-majority"
	for i, r := range active {
		for _, o := range active[:i] {
			if s.leased || !strangers(r.proc, o.proc) && !p.leftOut(r.proc) && !p.leftOut(o.proc) && needsLease {
				p.violate("X1", "%s runs on %s (token %d) and on %s (token %d)", s.name, o.proc.id, o.Token(),
					r.proc.id, r.Token())
			}
		}
	}
}

func (p *player) leftOut(proc *process) bool {
	for _, v := range p.promises.chain {
		if v.Standing(proc.id, proc.seen) == sbr.Out {
			return true
		}
	}
	return false
}

// watchSlots looks at all slots at this moment: X1, and that nothing runs on in a downed process (X5).
func (p *player) watchSlots() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.slots {
		p.alone(s)
		for _, r := range s.runs {
			if !r.over && r.proc.downed() && r.works() {
				p.violate("X5", "%s was downed, and its run of %s goes on", r.proc.id, s.name)
			}
		}
	}
}

// places says where singletons and shards run.
func (p *player) places() (singletons []scenario.SingletonResult, shards []scenario.ShardsResult) {
	p.mu.Lock()
	defer p.mu.Unlock()
	on := func(name string) string {
		if s := p.slots[name]; s != nil {
			for _, r := range slices.Backward(s.runs) {
				if r.works() {
					return r.proc.Name
				}
			}
		}
		return ""
	}
	for i := range p.s.Cluster.Singletons {
		name := p.s.Cluster.Singletons[i].Name
		singletons = append(singletons, scenario.SingletonResult{Name: name, On: on(name)})
	}
	for i := range p.s.Cluster.Shards {
		x := &p.s.Cluster.Shards[i]
		r := scenario.ShardsResult{Type: x.Type, Shards: shardsOf(x)}
		for k := range r.Shards {
			node := on(x.Type + "/" + strconv.Itoa(k))
			if node != "" {
				r.Running++
			}
			if node != "" && !slices.Contains(r.On, node) {
				r.On = append(r.On, node)
			}
		}
		shards = append(shards, r)
	}
	return singletons, shards
}
