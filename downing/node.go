package downing

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/downing/gossip"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// relays is how many other members carry each answer to a query as well, for the sake of pairs that cannot reach each other.
const relays = 2

// node is the Serf node as the engine uses it.
type node struct {
	serf     *serf.Serf
	shutdown <-chan struct{}
	// asking serializes queries: Serf gives two that are made at the same moment one number, and the answers to one are lost.
	asking sync.Mutex
}

func newNode(s *serf.Serf) *node { return &node{serf: s, shutdown: s.ShutdownCh()} }

func (n *node) members() []serf.Member { return n.serf.Members() }

// leaving reports whether the application has asked Serf to leave.
func (n *node) leaving(self string) bool {
	switch n.serf.State() {
	case serf.SerfLeaving, serf.SerfLeft:
		return true
	case serf.SerfAlive:
		return false
	default:
		// A Shutdown right after a Leave hides it. Its trace is the node's own status: no leave intent of others changes that.
		for _, m := range n.serf.Members() {
			if m.Name == self {
				return m.Status == serf.StatusLeaving || m.Status == serf.StatusLeft
			}
		}
		return true // erased: only a node that leaves is
	}
}

func (n *node) isShutdown() bool {
	select {
	case <-n.shutdown:
		return true
	default:
		return false
	}
}

// query sends one payload to every member that can be reached. Answers come until the time-out, then the channel is closed.
func (n *node) query(payload []byte, timeout time.Duration) (<-chan serf.NodeResponse, error) {
	n.asking.Lock()
	defer n.asking.Unlock()
	resp, err := n.serf.Query(gossip.QueryName, payload, &serf.QueryParam{Timeout: timeout, RelayFactor: relays})
	if err != nil {
		return nil, err
	}
	return resp.ResponseCh(), nil
}

// remove removes a member from the cluster if Serf calls it failed at this moment. A live node must never be removed: it would
// become a ghost that the cluster no longer lists but still talks to.
func (n *node) remove(id sbr.ID) (bool, error) {
	for _, m := range n.serf.Members() {
		if idOf(&m) != id {
			continue
		}
		if m.Status != serf.StatusFailed {
			return false, nil
		}
		return true, n.serf.RemoveFailedNode(m.Name)
	}
	return false, nil
}

type target struct{ name, addr string }

// ping probes the targets at the same time, directly and by UDP alone: no other member answers in their place.
func (n *node) ping(ctx context.Context, targets map[sbr.ID]target, timeout time.Duration) map[sbr.ID]bool {
	results := make(map[sbr.ID]bool, len(targets))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for id, t := range targets {
		wg.Go(func() {
			ok := n.pingOne(t, timeout)
			mu.Lock()
			results[id] = ok
			mu.Unlock()
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return results
}

func (n *node) pingOne(t target, timeout time.Duration) bool {
	addr, err := net.ResolveUDPAddr("udp", t.addr)
	if err != nil {
		return false
	}
	rtt, err := n.serf.Memberlist().Ping(t.name, addr)
	return err == nil && rtt <= timeout
}

// goAway leaves the cluster and shuts Serf down. Leave must have returned before Shutdown is called: Serf panics otherwise.
func (n *node) goAway(deadline time.Time) {
	left := make(chan struct{})
	go func() {
		defer close(left)
		defer func() { _ = recover() }() // a Shutdown that overtook it: Serf is gone, which is what is wanted
		_ = n.serf.Leave()
		// Perhaps the application leaves already, and a Shutdown would make its Leave panic.
		for n.serf.State() == serf.SerfLeaving && time.Now().Before(deadline) {
			time.Sleep(20 * time.Millisecond)
		}
	}()
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-left:
	case <-timer.C:
	}
	_ = n.serf.Shutdown()
}
