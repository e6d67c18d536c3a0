package kubernetes_test

import (
	"context"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/faults"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// disaster strikes the whole cluster, and so all steps at once: one request of each kind is on its way when it happens.
type disaster struct {
	begin, end func() error
	err        error
	// Each opens when all cells have come to it: prepared; with a request on the way; with an outcome.
	prepared, underWay, outcomes *faults.Gate
	// The heartbeat comes when it comes: the others start when it has.
	start    chan struct{}
	starts   sync.Once
	happened chan struct{}
	over     chan struct{}
}

func newDisaster(begin, end func() error) *disaster {
	return &disaster{
		begin: begin, end: end, prepared: faults.NewGate(), underWay: faults.NewGate(), outcomes: faults.NewGate(),
		start: make(chan struct{}), happened: make(chan struct{}), over: make(chan struct{}),
	}
}

// run is the disaster; it returns when all is well again, or sets err.
func (d *disaster) run(ctx context.Context) {
	for _, phase := range []struct {
		gate *faults.Gate
		do   func() error
		done chan struct{}
	}{{d.underWay, d.begin, d.happened}, {d.outcomes, d.end, d.over}} {
		select {
		case <-phase.gate.Open:
		case <-ctx.Done():
			d.err = context.Cause(ctx)
			return
		}
		if d.err = phase.do(); d.err != nil {
			return
		}
		close(phase.done)
	}
}

// ready keeps the cell back until its request can be one of those that are on the way.
func (d *disaster) ready(c *cell) {
	d.prepared.Arrive(c.step.name)
	if c.step.name == "heartbeat" {
		c.await(d.prepared.Open)
		return
	}
	c.await(d.start)
}

// leave is for a cell that is over: nobody waits for one that has failed.
func (d *disaster) leave(c *cell) {
	for _, g := range []*faults.Gate{d.prepared, d.underWay, d.outcomes} {
		g.Arrive(c.step.name)
	}
	if c.step.name == "heartbeat" {
		d.starts.Do(func() { close(d.start) })
	}
}

func (d *disaster) strike(c *cell, _ string) kubetest.Fault {
	d.underWay.Arrive(c.step.name)
	if c.step.name == "heartbeat" {
		d.starts.Do(func() { close(d.start) })
	}
	select {
	case <-d.happened:
	case <-c.ctx.Done():
	}
	return kubetest.Fault{}
}

// judged waits for the end of the disaster: nobody can look into the store before.
func (d *disaster) judged(c *cell) {
	d.outcomes.Arrive(c.step.name)
	c.await(d.over)
}

func (c *cell) await(event <-chan struct{}) {
	select {
	case <-event:
	case <-c.ctx.Done():
		require.FailNow(c, "waited too long")
	}
}
