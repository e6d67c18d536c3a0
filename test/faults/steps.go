package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// runAcquire is one Acquire of a lease that knows nothing yet: it reads, and then creates the record or
// updates it.
func (c *cell) runAcquire() {
	if c.step != "create" {
		c.takes(c.b)
		c.gives(c.b)
	}
	c.begin()
	out, seen := c.asked()
	mine := c.a.LastNonce()
	c.result(OutcomeText(out), seen)
	if c.step == "create" && out.Kind == sbr.Unknown && c.row.Stays && !c.row.Late && c.row.deed == nil {
		c.askAgain(seen, mine)
	}
	c.goOn()
	won, undone := c.history.Attempt(mine)
	require.False(c, out.Kind == sbr.Held && won, "attempt %s was told Held, and has won", mine)
	if c.row.Late && c.row.Stays && c.step != "read" {
		require.True(c, won && undone, "attempt %s was committed late: A frees what it was not granted", mine)
	}
}

// askAgain: once the fault is over the next Acquire succeeds; if the first one was committed, by adopting it.
func (c *cell) askAgain(seen lease.Snapshot, mine string) {
	c.heal()
	c.takes(c.a)
	now := c.settled()
	require.Equal(c, fmt.Sprintf("A %d", c.a.Token()), Describe(now))
	_, freed := c.history.Attempt(mine) // on a slow machine before it asked again
	if seen.Record.Holder == "A" && !freed {
		require.Equal(c, mine, now.Record.Nonce, "it was A's already")
		require.Equal(c, seen.Record.Token, now.Record.Token)
	}
}

// holding makes A the holder, under token 2, and B a party that has seen it: a party that has not gets that
// token again if the record is deleted.
func (c *cell) holding() {
	c.takes(c.b)
	c.gives(c.b)
	c.takes(c.a)
	c.within(slack, "B's read", func() bool {
		_, err := c.b.Read(c.ctx)
		return err == nil
	})
}

// runHeartbeat strikes a holder. It is over when the holder is told of its loss, or when it could hold no
// more had no later heartbeat been confirmed: well before another owner may take over. B tries to all the
// time.
func (c *cell) runHeartbeat() {
	c.holding()
	c.begin()
	over := c.hits().Add(settings.HeartbeatTimeout - time.Second)
	for c.a.Losses() == 0 && time.Now().Before(over) {
		switch {
		case c.whole != nil: // B is struck, too
		case c.row.deed != nil && !c.row.Stays: // it would take what somebody has left free
			_, _ = c.b.Read(c.ctx)
		default:
			c.b.Ask(c.ctx)
		}
		c.pause(50 * time.Millisecond)
	}
	outcome := "kept"
	if c.a.Losses() > 0 {
		outcome = "lost"
	}
	require.Equal(c, outcome == "kept", c.a.Check(), "Check and the callback agree")
	c.judged()
	c.result(outcome, c.settled())
	c.goOn()
}

// runRelease strikes a release. Check must be false before its request is on the way.
func (c *cell) runRelease() {
	c.holding()
	c.begin()
	err := c.a.Release(c.ctx)
	c.hits()
	require.False(c, c.held, "Check was true while the release was on its way")
	require.False(c, c.a.Check())
	c.judged()
	seen := c.settled()
	require.False(c, err == nil && seen.Record.Holder == "A", "released, and the record says %+v", seen.Record)
	require.False(c, errors.Is(err, lease.ErrNotHeld) && !errors.Is(err, lease.ErrLost), "%v", err)
	c.result(ReleaseText(err), seen)
	c.goOn()
}

// runWatch breaks the stream and strikes its next opening, and then lets B bring news.
func (c *cell) runWatch() {
	c.takes(c.b)
	seen := Follow(c.ctx, c.T, func(ctx context.Context, s *Sightings) error { return c.a.Watch(ctx, s.Add) })
	c.within(slack, "the watch", func() bool { return seen.Last() == "B 1" })
	c.begin()
	c.breakStream()
	c.hits()
	c.judged()
	_ = c.b.Release(c.ctx) // what became of the record does not matter
	c.takes(c.b)
	news := c.settled()
	outcome := "catches up"
	if c.whole == nil && c.row.Stays && !c.catchesUp(seen, Describe(news), settings.HeartbeatTimeout) {
		outcome = "blind until healed"
	}
	c.heal()
	require.True(c, c.catchesUp(seen, Describe(news), 4*slack), "the watch ends on %q, the record says %q",
		seen.Last(), Describe(news))
	require.Empty(c, seen.Problem())
	require.False(c, c.a.Check())
	c.result(outcome, c.settled())
	last := c.b.Token()
	c.gives(c.b)
	require.True(c, c.catchesUp(seen, fmt.Sprintf("free %d", last), 2*slack), "the watch goes on")
	c.takes(c.a)
	require.Greater(c, c.a.Token(), last)
}

// breakStream ends the connections and strikes the next one. A store whose client opens its stream again by
// itself does not tell.
func (c *cell) breakStream() {
	byProxy := c.whole == nil && c.row.mode != Pass
	if byProxy {
		c.proxy.Set(c.row.mode, !c.row.Stays)
	}
	c.proxy.Break(false)
	switch {
	case c.row.deed != nil:
		c.row.deed(c)
		c.strikes()
	case c.whole != nil:
		c.strikes()
	case byProxy && !c.row.Stays && c.row.mode == Refuse:
		c.pause(settings.HeartbeatInterval)
		c.proxy.Set(Pass, false)
	}
}

func (c *cell) catchesUp(seen *Sightings, news string, bound time.Duration) bool {
	for end := time.Now().Add(bound); time.Now().Before(end) &&
		c.ctx.Err() == nil; c.pause(20 * time.Millisecond) {
		if seen.Last() == news {
			return true
		}
	}
	return false
}

// goOn is what must be true after every outcome: while the fault lasts B can have the lease as soon as A has
// not; once it is over A works again.
func (c *cell) goOn() {
	lost := c.a.Losses()
	if c.a.Check() {
		token, out := c.a.Token(), c.b.Ask(c.ctx)
		if c.a.Token() == token && out.Kind != sbr.Unknown {
			require.Equal(c, "held by A", OutcomeText(out))
		}
		c.gives(c.a)
	}
	before := c.settled().Record.Token
	if c.b.Check() {
		before-- // it was faster than A
	}
	c.within(settings.HeartbeatTimeout+slack, "B's turn", func() bool {
		require.False(c, c.a.Check(), "A holds the lease although it was told %q", c.got)
		return c.b.Ask(c.ctx).Kind == sbr.Granted
	})
	require.Greater(c, c.b.Token(), before)
	require.Equal(c, fmt.Sprintf("B %d", c.b.Token()), Describe(c.settled()))
	c.heal()
	c.within(2*slack, "A's answer", func() bool {
		out := c.a.Ask(c.ctx)
		require.NotEqual(c, sbr.Granted, out.Kind, "B holds the lease")
		return OutcomeText(out) == "held by B"
	})
	last := c.b.Token()
	c.gives(c.b)
	c.takes(c.a)
	require.Greater(c, c.a.Token(), last)
	require.Equal(c, fmt.Sprintf("A %d", c.a.Token()), Describe(c.settled()))
	require.Equal(c, lost, c.a.Losses(), "a loss is reported once, and nothing else is")
}

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
