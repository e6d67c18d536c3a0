package kubernetes_test

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/serf-sbr/serf-sbr/test/faults"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// step is a kind of request of A that the faults strike.
type step struct {
	name string
	// verb is that of the request; right is the one it takes.
	verb, right string
	// write: the request changes the object. call: it is part of a call that somebody waits for.
	write, call bool
	run         func(*cell)
}

const stepCount = 6

var steps = [stepCount]step{
	{"read", http.MethodGet, "get", false, true, (*cell).runAcquire},
	{"create", http.MethodPut, "create", true, true, (*cell).runAcquire},
	{"update", http.MethodPatch, "patch", true, true, (*cell).runAcquire},
	{"heartbeat", http.MethodPatch, "patch", true, false, (*cell).runHeartbeat},
	{"release", http.MethodPatch, "patch", true, true, (*cell).runRelease},
	{"watch", kubetest.VerbWatch, "watch", false, false, (*cell).runWatch},
}

// free makes an object that nobody holds any more, under token 1.
func (c *cell) free() {
	c.takes(c.b)
	c.gives(c.b)
}

// holding makes A the holder, under token 2, and B a party that knows.
func (c *cell) holding() {
	c.free()
	c.takes(c.a)
	c.knows(c.b)
}

// takes, gives and knows set a scene, however slow the machine is.
func (c *cell) takes(p *faults.Party) {
	c.within(faultSlack, p.Name+"'s grant", func() bool { return p.Ask(c.ctx).Kind == sbr.Granted })
}

func (c *cell) gives(p *faults.Party) {
	c.within(faultSlack, p.Name+"'s release", func() bool {
		released := p.Release(c.ctx) == nil
		if !released && c.settled().Record.Holder == p.Name {
			p.Ask(c.ctx) // the machine was so slow that the lease was lost
			return false
		}
		return true
	})
}

func (c *cell) knows(p *faults.Party) {
	c.within(faultSlack, p.Name+"'s read", func() bool {
		_, err := p.Read(c.ctx)
		return err == nil
	})
}

// begin does what comes right before the step.
func (c *cell) begin() {
	if c.fault.before != nil {
		c.fault.before(c)
	}
	faults.WatchOver(c.T, c.a, c.b)
	if c.fault.disaster != nil {
		c.fault.disaster.ready(c)
	}
	if c.step.name == "release" && c.fault.before != nil {
		// A heartbeat must not be taken for the release: the next one is at least a quarter of an interval away.
		sent := c.proxy.Count(c.step.verb, "")
		c.within(faultSlack, "a heartbeat", func() bool { return c.proxy.Count(c.step.verb, "") > sent })
	}
	c.arm()
}

// runAcquire is one Acquire of a lease that knows nothing yet: it reads, and then creates the object or updates it.
func (c *cell) runAcquire() {
	if c.step.name == "create" {
		c.knows(c.b)
	} else {
		c.free()
	}
	c.begin()
	out := c.a.Ask(c.ctx)
	c.struck()
	c.judged()
	seen := c.settled()
	faults.Honest(c.T, c.a, out, seen)
	c.got = result{faults.OutcomeText(out), c.settle(faults.Describe(seen))}
	mine := c.a.LastNonce()
	if c.step.name == "create" && out.Kind == sbr.Unknown && c.fault.reach == everything && c.fault.disaster == nil {
		c.askAgain(seen, mine)
	}
	c.goOn()
	won, undone := c.history.Attempt(mine)
	require.False(c, out.Kind == sbr.Held && won, "attempt %s was told Held, and has won", mine)
	if c.fault.late && c.fault.stays && c.step.write {
		require.True(c, won && undone, "attempt %s was committed late: A frees what it was not granted", mine)
	}
}

// askAgain: once the fault is over the next Acquire succeeds; if the first one was committed, by adopting it.
func (c *cell) askAgain(seen lease.Snapshot, mine string) {
	c.heal()
	c.takes(c.a)
	now := c.settled()
	require.Equal(c, fmt.Sprintf("A %d", c.a.Token()), faults.Describe(now))
	if seen.Record.Holder != "A" {
		return
	}
	if _, freed := c.history.Attempt(mine); freed {
		c.spoiled.Store(true) // on a slow machine A may have freed it before it asked again
	}
	require.Equal(c, mine, now.Record.Nonce, "it was A's already")
	require.Equal(c, seen.Record.Token, now.Record.Token)
}

// settle waits until the API server has answered what it was sent, checks how, and adds what a late commit made of the object.
func (c *cell) settle(before string) string {
	if c.fault.disaster != nil {
		return before // a server that was down has answered nothing
	}
	answers, reads := c.hit.seen()
	if c.fault.unseen || c.fault.unseenReads && !c.step.write {
		require.Empty(c, answers, "the API server must not see the request")
		return before
	}
	if c.fault.late && c.step.call {
		require.Empty(c, answers, "the request reached the API server before the call was over")
		require.NotZero(c, reads, "A read the old version again, and drew no conclusion")
	}
	select {
	case <-c.hit.answered:
	case <-c.ctx.Done():
		require.FailNow(c, "the API server never answered")
	case <-time.After(faultSlack):
		require.FailNow(c, "the API server never answered")
	}
	if answers, _ = c.hit.seen(); c.step.write {
		require.Contains(c, c.fault.answers(c.step.name), answers[0], "what the API server said to the first request struck")
	}
	if after := c.object(); c.fault.late && after != before {
		return before + ", then " + after
	}
	return before
}

// runHeartbeat strikes a holder. It is over when the holder is told of its loss, or when it could hold no more had no later
// heartbeat been confirmed: well before anybody else may take over. B tries to all the time.
func (c *cell) runHeartbeat() {
	c.holding()
	c.begin()
	over := c.struck().Add(faultSettings.HeartbeatTimeout - time.Second)
	for c.a.Losses() == 0 && time.Now().Before(over) {
		switch {
		case c.fault.disaster != nil: // B is struck, too
		case c.fault.byHand:
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
	before := c.object()
	c.settle(before)
	c.got = result{outcome, before}
	c.goOn()
}

// runRelease strikes a release. Check must be false before its request is on the way.
func (c *cell) runRelease() {
	c.holding()
	c.begin()
	err := c.a.Release(c.ctx)
	c.struck()
	require.False(c, c.hit.flag, "Check was true while the release was on its way")
	require.False(c, c.a.Check())
	c.judged()
	seen := c.settled()
	require.False(c, err == nil && seen.Record.Holder == "A", "released, and the object says %+v", seen.Record)
	require.False(c, errors.Is(err, lease.ErrNotHeld) && !errors.Is(err, lease.ErrLost), "%v", err)
	c.got = result{faults.ReleaseText(err), c.settle(faults.Describe(seen))}
	c.goOn()
}

// judged ends a disaster, which must be over before an observer can look.
func (c *cell) judged() {
	if c.fault.disaster != nil {
		c.fault.disaster.judged(c)
	}
}

// goOn is what must be true after every outcome: while the fault lasts B can have the lease as soon as A has not; once it is over
// A works again.
func (c *cell) goOn() {
	if c.a.Check() {
		c.blocked()
		c.gives(c.a)
	}
	before := c.settled().Record.Token
	if c.b.Check() {
		before-- // it was faster than A
	}
	c.within(faultSettings.HeartbeatTimeout+faultSlack, "B's turn", func() bool {
		require.False(c, c.a.Check(), "A holds the lease behind the back of whoever was told %q", c.got.outcome)
		return c.b.Ask(c.ctx).Kind == sbr.Granted
	})
	require.Greater(c, c.b.Token(), before)
	require.Equal(c, fmt.Sprintf("B %d", c.b.Token()), c.object())
	c.heal()
	c.within(faultSlack, "A's answer", func() bool {
		out := c.a.Ask(c.ctx)
		require.NotEqual(c, sbr.Granted, out.Kind, "B holds the lease")
		return faults.OutcomeText(out) == "held by B"
	})
	last := c.b.Token()
	c.gives(c.b)
	c.takes(c.a)
	require.Greater(c, c.a.Token(), last)
	require.Equal(c, fmt.Sprintf("A %d", c.a.Token()), c.object())
	losses := 0
	if c.got.outcome == "lost" {
		losses = 1
	}
	require.Equal(c, losses, c.a.Losses(), "a loss is reported once, and nothing else is")
}

// blocked: B does not get what A holds.
func (c *cell) blocked() {
	token := c.a.Token()
	out := c.b.Ask(c.ctx)
	if c.a.Token() == token && out.Kind != sbr.Unknown {
		require.Equal(c, "held by A", faults.OutcomeText(out))
	}
}
