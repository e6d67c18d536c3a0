package serf_test

import (
	"errors"

	"github.com/serf-sbr/serf-sbr/lease/memory"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// step does what one step says; number tells it from others.
func (p *player) step(number int, st *scenario.Step) error {
	switch {
	case st.Partition != nil:
		groups := make([][]int, len(*st.Partition))
		for i, g := range *st.Partition {
			groups[i] = p.expand(g)
		}
		return p.top.partition(groups)
	case st.Cut != nil:
		a, b := p.index[(*st.Cut)[0]], p.index[(*st.Cut)[1]]
		return errors.Join(p.top.cutOneWay(a, b), p.top.cutOneWay(b, a))
	case st.CutOneWay != nil:
		return p.top.cutOneWay(p.index[(*st.CutOneWay)[0]], p.index[(*st.CutOneWay)[1]])
	case st.Heal != nil:
		return p.top.heal()
	case st.Crash != nil:
		p.crash(p.node(*st.Crash))
	case st.Restart != nil:
		p.crash(p.node(*st.Restart))
		p.boot(p.node(*st.Restart))
	case st.Join != nil:
		p.boot(p.node(*st.Join))
	case st.Leave != nil:
		if proc := p.node(*st.Leave).proc; proc != nil {
			proc.leave()
		}
	case st.Pause != nil:
		if proc := p.node(*st.Pause).proc; proc != nil {
			return proc.pause(*st.For)
		}
	case st.LeaseStore != nil:
		p.hurtStore(number, st)
	}
	return nil // a clock: see unplayable
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

// hurtStore sets a fault and arranges its end. A later fault of the same node outlives the end of an earlier one.
func (p *player) hurtStore(number int, st *scenario.Step) {
	hit := p.nodes
	if st.Nodes != nil {
		hit = nil
		for _, i := range p.expand(*st.Nodes) {
			hit = append(hit, p.nodes[i])
		}
	}
	for _, n := range hit {
		n.hurt = number
		n.healStore()
		inject(n.view, st.LeaseStore)
	}
	if st.For == nil {
		return
	}
	p.after(*st.For, func() error {
		for _, n := range hit {
			if n.hurt == number {
				n.healStore()
			}
		}
		return nil
	})
}

func (n *node) healStore() {
	n.view.Heal()
	n.view.SetDelay(storeDelay)
}

func inject(v *memory.View, f *scenario.StoreFault) {
	switch f.Kind {
	case "down": // nothing gets through, either way
		v.LoseRequests(memory.Always)
		v.SilenceWatch(true)
	case "lose-requests":
		v.LoseRequests(memory.Always)
	case "lose-responses":
		v.LoseResponses(memory.Always)
	case "conflict":
		v.Conflict(memory.Always)
	default:
		v.SetDelay(storeDelay + *f.Slow.Slow)
	}
}
