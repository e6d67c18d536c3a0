package coordinator_test

import (
	"cmp"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func (n *node) start(e slot.Start) {
	w := n.w
	require.Nil(w.t, n.runs[e.Shard], "%s runs shard %d already", n.id, e.Shard)
	if w.useLease && n.behind {
		n.refused[e.Shard] = e.Run
		w.after(0, func() {
			n.toHostLater(slot.LeaseLost{Shard: e.Shard, Attempt: n.granted[e.Shard], Why: "it has run out"})
			n.toHostLater(slot.RunEnded{Shard: e.Shard, Run: e.Run, State: e.State, Rest: 200 * time.Millisecond})
		})
		return
	}
	w.trace("%s STARTS shard %d, token %s%s", n.name, e.Shard, number(e.Token), from(e))
	n.runs[e.Shard] = &run{number: e.Run, token: e.Token}
	if w.owners[e.Shard] == n.id {
		require.GreaterOrEqual(w.t, e.Token, w.tokens[e.Shard], "shard %d on %s", e.Shard, n.id)
	} else {
		require.Greater(w.t, e.Token, w.tokens[e.Shard], "shard %d on %s after %s", e.Shard, n.id, w.owners[e.Shard])
	}
	w.tokens[e.Shard], w.owners[e.Shard] = e.Token, n.id
	w.starts[e.Shard]++
	w.only(e.Shard)
}

func from(e slot.Start) string {
	if e.From == "" {
		return ""
	}
	return fmt.Sprintf(", from %s with %q", e.From, e.State)
}

func (n *node) stop(e slot.Stop) {
	n.w.trace("%s stops shard %d (%s)", n.name, e.Shard, e.Cause)
	if e.Run == n.refused[e.Shard] {
		return
	}
	r := n.runs[e.Shard]
	require.NotNil(n.w.t, r)
	r.stopping = true
	n.w.after(n.w.stopTakes(), func() { n.end(e.Shard, e.Run) })
}

func (n *node) end(shard int, number uint64) {
	if n.crashed {
		return
	}
	if n.paused {
		n.backlog = append(n.backlog, func() { n.end(shard, number) })
		return
	}
	if r := n.runs[shard]; r != nil && r.number == number {
		delete(n.runs, shard)
		n.toHost(slot.RunEnded{Shard: shard, Run: number, State: []byte(n.name), Rest: 200 * time.Millisecond})
	}
}

// acquire gives the lease to whoever asks while nobody holds it.
func (n *node) acquire(e slot.AcquireLease) {
	switch {
	case n.crashed:
		return
	case n.paused:
		n.backlog = append(n.backlog, func() { n.acquire(e) })
		return
	case n.cut:
		n.w.after(time.Second, func() {
			n.toHostLater(slot.LeaseAnswer{Shard: e.Shard, Attempt: e.Attempt, Outcome: sbr.Unknown, Why: "the store cannot be reached"})
		})
		return
	}
	l := n.w.lease(e.Shard)
	if l.foreign || l.holder != "" && l.holder != n.id {
		n.toHost(slot.LeaseAnswer{Shard: e.Shard, Attempt: e.Attempt, Outcome: sbr.Held, Why: "held by " + string(cmp.Or(l.holder, "a stranger"))})
		return
	}
	l.token++
	l.holder, l.attempt, n.granted[e.Shard] = n.id, e.Attempt, e.Attempt
	n.toHost(slot.LeaseAnswer{Shard: e.Shard, Attempt: e.Attempt, Outcome: sbr.Granted, Token: l.token})
}

func (n *node) release(e slot.ReleaseLease) {
	if n.crashed {
		return
	}
	if n.paused {
		n.backlog = append(n.backlog, func() { n.release(e) })
		return
	}
	if l := n.w.lease(e.Shard); l.holder == n.id && l.attempt == e.Attempt {
		l.holder = ""
	}
	n.toHost(slot.LeaseReleased(e))
}

func (w *world) lease(shard int) *leaseState {
	if w.leases[shard] == nil {
		w.leases[shard] = &leaseState{}
	}
	return w.leases[shard]
}

// only checks that a shard runs once. A process that is paused does nothing; one that stood still is told to stop before it does anything else, but what
// it takes to stop then is what no machine can help: the fence is there for it.
func (w *world) only(shard int) {
	var on []string
	for _, n := range w.nodes {
		if r := n.runs[shard]; r != nil && !n.crashed && !n.paused && !(n.stood && r.stopping) {
			on = append(on, n.name)
		}
	}
	if w.forbidDual {
		require.LessOrEqual(w.t, len(on), 1, "at %v shard %d runs on %v", w.now, shard, on)
	}
}
