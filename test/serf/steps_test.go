package serf_test

import (
	"errors"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// step does what one step says; number tells it from others.
func (p *player) step(number int, st *scenario.Step) error {
	switch {
	case st.Partition != nil:
		groups := make([][]int, len(*st.Partition))
		for i, g := range *st.Partition {
			groups[i] = p.names.Expand(g)
		}
		return p.top.partition(groups)
	case st.Cut != nil:
		a, b := p.names.Index[(*st.Cut)[0]], p.names.Index[(*st.Cut)[1]]
		return errors.Join(p.top.cutOneWay(a, b), p.top.cutOneWay(b, a))
	case st.CutOneWay != nil:
		return p.top.cutOneWay(p.names.Index[(*st.CutOneWay)[0]], p.names.Index[(*st.CutOneWay)[1]])
	case st.Link != nil, st.LinkOneWay != nil:
		return p.link(st)
	case st.Heal != nil:
		return p.top.heal()
	case st.Crash != nil:
		p.crash(p.node(*st.Crash))
	case st.Restart != nil:
		p.crash(p.node(*st.Restart))
		p.boot(p.node(*st.Restart))
	case st.Join != nil:
		p.boot(p.node(*st.Join))
	case st.Down != nil:
		p.operatorDown(p.node(*st.Down), p.node(*st.By))
	case st.Leave != nil:
		if proc := p.node(*st.Leave).proc; proc != nil {
			proc.leave()
		}
	case st.ForceLeave != nil:
		p.forceLeave(st)
	case st.Pause != nil:
		if proc := p.node(*st.Pause).proc; proc != nil {
			return proc.pause(st.For.From)
		}
	case st.LeaseStore != nil && st.LeaseStore.Kind == "forget":
		p.forget(func() { p.store.Delete() })
	case st.LeaseStore != nil && st.LeaseStore.Change.Restore != nil:
		p.forget(func() { p.store.Restore(p.backups[*st.LeaseStore.Change.Restore]) })
	case st.LeaseStore != nil:
		p.hurtStore(number, st, func(v *leasetest.Faulty) { inject(v, st.LeaseStore) })
	case st.Rights != nil:
		// refused at once, and so unknown
		p.hurtStore(number, st, func(v *leasetest.Faulty) { v.SetUnavailable(true) })
	case st.Clock != nil: // no process starts under it: see unplayable
	default:
		return errors.New("this step is not played over Serf")
	}
	return nil
}

// link changes every link between two members or zones.
func (p *player) link(st *scenario.Step) error {
	ends := st.Link
	if ends == nil {
		ends = st.LinkOneWay
	}
	var errs []error
	for _, a := range p.names.Expand((*ends)[:1]) {
		for _, b := range p.names.Expand((*ends)[1:]) {
			errs = append(errs, p.top.link(a, b, st.Loss, st.Latency))
			if st.Link != nil {
				errs = append(errs, p.top.link(b, a, st.Loss, st.Latency))
			}
		}
	}
	return errors.Join(errs...)
}

// forceLeave lets an operator remove members that Serf calls failed on a member, as soon as it does: once
// each.
func (p *player) forceLeave(st *scenario.Step) {
	on := p.nodes
	if st.On != nil {
		on = nil
		for _, i := range p.names.Expand(*st.On) {
			on = append(on, p.nodes[i])
		}
	}
	names := make(map[string]bool)
	for _, i := range p.names.Expand(*st.ForceLeave) {
		names[p.nodes[i].Name] = true
	}
	for _, n := range on {
		if n.proc != nil && n.proc.up() {
			p.evict(n.proc, names, make(map[string]bool))
		}
	}
}

// evict looks for failed members now, and again as long as some of the named ones have not been removed.
func (p *player) evict(proc *process, names, removed map[string]bool) {
	if !proc.up() {
		return
	}
	for _, m := range proc.serf.Members() {
		if m.Status != serf.StatusFailed || !names[m.Name] || removed[m.Name] {
			continue
		}
		removed[m.Name] = true
		p.background.Go(func() { p.report(proc.serf.RemoveFailedNode(m.Name)) })
	}
	if len(removed) < len(names) {
		p.after(sampleEvery, func() error {
			p.evict(proc, names, removed)
			return nil
		})
	}
}

// operatorDown lets an operator ask a member to down another one: sbr down. It may be done, refused, or not
// known: what it does to the cluster is for the promises and the file to say.
func (p *player) operatorDown(target, by *node) {
	proc := by.proc
	if proc == nil || !proc.up() || proc.gate.paused() {
		return // nobody answers there
	}
	proc.requests.Add(1)
	p.background.Go(func() {
		defer proc.requests.Add(-1)
		_ = proc.provider.Down(proc.ctx, target.Name, "")
	})
}

// forget changes what the store holds, which is no process's write.
func (p *player) forget(change func()) {
	p.mu.Lock()
	p.promises.replaced = true
	p.mu.Unlock()
	change()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.promises.replaced, p.promises.last = false, p.store.Snapshot().Record
}

// backUp keeps what the store holds at the times to which it goes back.
func (p *player) backUp() {
	for i := range p.s.Steps {
		if f := p.s.Steps[i].LeaseStore; f != nil && f.Change.Restore != nil {
			at := *f.Change.Restore
			p.agenda.add(at, func() error {
				p.backups[at] = p.store.Snapshot().Record
				return nil
			})
		}
	}
}

func (p *player) crash(n *node) {
	if n.proc != nil {
		n.proc.crash()
	}
}

func (p *player) boot(n *node) {
	proc := p.newProcess(n)
	p.background.Go(func() {
		if err := proc.boot(); err != nil {
			p.report(err)
			p.report(proc.bury()) // it was killed while it started
		}
	})
}

// hurtStore sets a fault and arranges its end. A later fault of the same node outlives the end of an earlier
// one.
func (p *player) hurtStore(number int, st *scenario.Step, fault func(*leasetest.Faulty)) {
	hit := p.nodes
	if st.Nodes != nil {
		hit = nil
		for _, i := range p.names.Expand(*st.Nodes) {
			hit = append(hit, p.nodes[i])
		}
	}
	for _, n := range hit {
		n.hurt = number
		p.hurt(n, fault)
	}
	if st.For == nil {
		return
	}
	p.after(st.For.From, func() error {
		for _, n := range hit {
			if n.hurt == number {
				p.hurt(n, nil)
			}
		}
		return nil
	})
}

// hurt gives all ways of a node to the store a fault, or none, instead of the one before.
func (p *player) hurt(n *node, fault func(*leasetest.Faulty)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n.fault = fault
	for _, v := range n.views {
		n.suffer(v)
	}
}

// suffer gives one of them the node's fault.
func (n *node) suffer(v *leasetest.Faulty) {
	v.Heal()
	v.SetDelay(storeDelay)
	if n.fault != nil {
		n.fault(v)
	}
}

func inject(v *leasetest.Faulty, f *scenario.StoreFault) {
	switch f.Kind {
	case "down": // nothing gets through, either way
		v.Inject(leasetest.All, leasetest.LoseRequest, leasetest.Always)
		v.SilenceWatch(true)
	case "lose-requests":
		v.Inject(leasetest.All, leasetest.LoseRequest, leasetest.Always)
	case "lose-responses":
		v.Inject(leasetest.All, leasetest.LoseResponse, leasetest.Always)
	case "conflict":
		v.Inject(leasetest.Writes, leasetest.Conflict, leasetest.Always)
	default:
		v.SetDelay(storeDelay + *f.Change.Slow)
	}
}
