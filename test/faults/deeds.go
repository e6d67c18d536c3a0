package faults

import (
	"time"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// What others do to the record while a request of A is about to be sent. A deed does not end the cell: it is
// A's goroutine that calls it.

// rewrite changes the record past all leases.
func (c *cell) rewrite(change func(*lease.Record)) {
	now, err := c.direct.Read(c.ctx)
	if err == nil {
		change(&now.Record)
		_, err = c.direct.Write(c.ctx, now.Record, now.Version)
	}
	if err != nil {
		c.Errorf("setting the scene: %v", err)
	}
}

// touch changes nothing but the version, and makes a record without a holder if there is none.
func (c *cell) touch() {
	c.rewrite(func(r *lease.Record) { r.Renewed = r.Renewed.Add(time.Millisecond) })
}

func (c *cell) remove() {
	c.touch() // there must be one to delete
	if err := c.target.Delete(c.ctx, c.name); err != nil {
		c.Errorf("setting the scene: %v", err)
	}
}

// overtake takes the lease away from its holder, as a hand does that frees a stuck one in its own way.
func (c *cell) overtake() {
	switch c.step {
	case "heartbeat", "release":
		c.rewrite(func(r *lease.Record) { r.Holder = "operator" })
	case "watch":
		_ = c.b.Release(c.ctx)
		c.b.Ask(c.ctx)
	default:
		c.b.Ask(c.ctx)
	}
}

// displace is a process under A's name that gets the lease from any holder, and dies: the holder has A's
// name, and is not this A.
func (c *cell) displace() {
	if c.step == "watch" {
		_ = c.b.Release(c.ctx)
	}
	life := c.party("A", "former life")
	out := linear.AnswerOf(life.Acquire(c.ctx, lease.Proposal{TakeOver: []string{"B"}}))
	if out.Kind != sbr.Granted {
		c.Errorf("setting the scene: %v", out)
	}
	life.Close()
}
