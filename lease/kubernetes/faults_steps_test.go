package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/kubetest"
	"github.com/serf-sbr/serf-sbr/lease"
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
	require.Equal(c, lease.Granted, c.b.acquire(c.ctx).Kind)
	require.Equal(c, lease.Released, c.b.Release(c.ctx).Kind)
}

// holding makes A the holder, under token 2, and B a party that knows.
func (c *cell) holding() {
	c.free()
	c.within(faultSlack, "A's grant", func() bool { return c.a.acquire(c.ctx).Kind == lease.Granted })
	_, err := c.b.Read(c.ctx)
	require.NoError(c, err)
}

// begin does what comes right before the step.
func (c *cell) begin() {
	if c.fault.before != nil {
		c.fault.before(c)
	}
	c.watchOver()
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
		_, err := c.b.Read(c.ctx)
		require.NoError(c, err)
	} else {
		c.free()
	}
	c.begin()
	out := c.a.acquire(c.ctx)
	c.struck()
	c.judged()
	seen := c.settled()
	c.honest(out, seen)
	c.got = result{outcomeText(out), c.settle(describe(seen))}
	mine := c.a.lastNonce()
	c.goOn()
	if out.Kind == lease.Held {
		c.neverWon(mine)
	}
}

// neverWon: Held means that this attempt holds nothing and never will.
func (c *cell) neverWon(nonce string) {
	for _, r := range c.history.all() {
		if r.Nonce == nonce {
			c.Errorf("attempt %s was told Held and has won: %+v", nonce, r)
		}
	}
}

// settle waits until the API server has answered what it was sent, checks how, and adds what a late commit made of the object.
func (c *cell) settle(before string) string {
	if c.fault.disaster != nil {
		return before // a server that was down has answered nothing
	}
	if c.fault.unseen || c.fault.unseenReads && !c.step.write {
		c.hit.mu.Lock()
		defer c.hit.mu.Unlock()
		require.Empty(c, c.hit.answers, "the API server must not see the request")
		return before
	}
	if c.fault.late && c.step.call {
		c.hit.mu.Lock()
		require.Empty(c, c.hit.answers, "the request reached the API server before the call was over")
		c.hit.mu.Unlock()
		require.NotZero(c, c.proxy.Count(http.MethodGet, ""), "nobody re-read")
	}
	select {
	case <-c.hit.answered:
	case <-c.ctx.Done():
		require.FailNow(c, "the API server never answered")
	case <-time.After(faultSlack):
		require.FailNow(c, "the API server never answered")
	}
	if c.step.write {
		c.hit.mu.Lock()
		require.Contains(c, c.fault.answers(c.step.name), c.hit.answers[0], "what the API server said to the first request struck")
		c.hit.mu.Unlock()
	}
	if after := c.object(); c.fault.late && after != before {
		return before + ", then " + after
	}
	return before
}

// runHeartbeat strikes a holder. It is over when the holder is told of its loss, or when it could hold no more had no later
// heartbeat been confirmed.
func (c *cell) runHeartbeat() {
	c.holding()
	c.begin()
	over := c.struck().Add(faultSettings.Window() + 500*time.Millisecond)
	for c.a.lostTimes() == 0 && time.Now().Before(over) {
		if c.fault.disaster == nil {
			_, err := c.b.Read(c.ctx) // B takes notice of the signs of life, and of their absence
			require.NoError(c, err)
		}
		c.pause(100 * time.Millisecond)
	}
	outcome := "kept"
	if c.a.lostTimes() > 0 {
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
	out := c.a.Release(c.ctx)
	c.struck()
	require.False(c, c.hit.flag, "Check was true while the release was on its way")
	require.False(c, c.a.Check())
	c.judged()
	seen := c.settled()
	free := seen.Record.Holder != "A"
	require.False(c, out.Kind == lease.Released && !free, "released, and the object says %+v", seen.Record)
	require.False(c, out.Kind == lease.NotReleased && !errors.Is(out.Err, lease.ErrLost), "%v", out)
	c.got = result{releaseText(out), c.settle(describe(seen))}
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
		require.Equal(c, lease.Released, c.a.Release(c.ctx).Kind)
	}
	before := c.settled().Record.Token
	if c.b.Check() {
		before-- // it was faster than A
	}
	c.within(faultSettings.HeartbeatTimeout+faultSlack, "B's turn", func() bool { return c.b.acquire(c.ctx).Kind == lease.Granted })
	require.Greater(c, c.b.Token(), before)
	require.Equal(c, fmt.Sprintf("B %d", c.b.Token()), c.object())
	c.heal()
	c.within(faultSlack, "A's answer", func() bool {
		out := c.a.acquire(c.ctx)
		require.NotEqual(c, lease.Granted, out.Kind, "B holds the lease")
		return outcomeText(out) == "held by B"
	})
	last := c.b.Token()
	require.Equal(c, lease.Released, c.b.Release(c.ctx).Kind)
	c.within(faultSlack, "A's turn", func() bool { return c.a.acquire(c.ctx).Kind == lease.Granted })
	require.Greater(c, c.a.Token(), last)
	require.Equal(c, fmt.Sprintf("A %d", c.a.Token()), c.object())
	losses := 0
	if c.got.outcome == "lost" {
		losses = 1
	}
	require.Equal(c, losses, c.a.lostTimes(), "a loss is reported once, and nothing else is")
}

// blocked: B does not get what A holds.
func (c *cell) blocked() {
	token := c.a.Token()
	out := c.b.acquire(c.ctx)
	if c.a.Token() == token {
		require.Equal(c, "held by A", outcomeText(out))
	}
}

// runWatch breaks the stream and strikes its next opening, and then lets B bring news.
func (c *cell) runWatch() {
	c.free()
	require.Equal(c, lease.Granted, c.b.acquire(c.ctx).Kind)
	seen := c.follow(func(ctx context.Context, s *sightings) error { return c.a.Watch(ctx, s.add) })
	c.within(faultSlack, "the watch", func() bool { return seen.last() == "B 2" })
	c.begin()
	c.breakStream()
	c.struck()
	c.judged()
	news := c.news()
	outcome := "catches up"
	if c.fault.stays && !c.catchesUp(seen, news, 6*time.Second) {
		outcome = "blind until healed"
	}
	c.heal()
	require.True(c, c.catchesUp(seen, news, 2*faultSlack), "the watch ends on %q, the object says %q", seen.last(), news)
	require.Empty(c, seen.problem())
	require.False(c, c.a.Check())
	c.got = result{outcome, c.object()}
	c.settle(news)
	last := c.b.Token()
	require.Equal(c, lease.Released, c.b.Release(c.ctx).Kind)
	require.True(c, c.catchesUp(seen, fmt.Sprintf("free %d", last), faultSlack), "the watch goes on")
	c.within(faultSlack, "A's turn", func() bool { return c.a.acquire(c.ctx).Kind == lease.Granted })
	require.Greater(c, c.a.Token(), last)
}

func (c *cell) catchesUp(seen *sightings, news string, bound time.Duration) bool {
	for end := time.Now().Add(bound); time.Now().Before(end) && c.ctx.Err() == nil; c.pause(20 * time.Millisecond) {
		if seen.last() == news {
			return true
		}
	}
	return false
}

// news is a change of the object that A did not make.
func (c *cell) news() string {
	c.b.Release(c.ctx) // whatever became of the object
	c.within(faultSlack, "B's turn", func() bool { return c.b.acquire(c.ctx).Kind == lease.Granted })
	return c.object()
}

// breakStream takes down the connection that the stream shares with a read.
func (c *cell) breakStream() {
	var poked atomic.Bool
	c.proxy.SetFault(func(r *http.Request) kubetest.Fault {
		if kubetest.Verb(r) == http.MethodGet && !poked.Swap(true) {
			return kubetest.Fault{Kind: kubetest.FaultDropRequest, Cut: c.fault.cut}
		}
		return c.hook(r)
	})
	_, err := c.behind.Read(c.ctx)
	require.Error(c, err)
}

// sightings is what a watch brought.
type sightings struct {
	mu      sync.Mutex
	records []lease.Record
}

// follow collects what a watch brings until the end of the cell.
func (c *cell) follow(watch func(context.Context, *sightings) error) *sightings {
	s := &sightings{}
	ctx, cancel := context.WithCancel(c.ctx)
	done := make(chan error, 1)
	go func() { done <- watch(ctx, s) }()
	c.cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			c.Errorf("a watch ended: %v", err)
		}
	})
	return s
}

func (s *sightings) all() []lease.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.records)
}

func (s *sightings) add(r lease.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, r)
}

func (s *sightings) last() string {
	all := s.all()
	if len(all) == 0 {
		return ""
	}
	return describe(lease.Snapshot{Record: all[len(all)-1], Version: "seen"})
}

// problem: a watch may skip states but never goes backwards.
func (s *sightings) problem() string {
	all := s.all()
	for i := range all[1:] {
		if all[i+1].Token < all[i].Token {
			return fmt.Sprintf("the watch went from token %d back to %d", all[i].Token, all[i+1].Token)
		}
	}
	return ""
}
