package downing

import (
	"context"
	"maps"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// relays is how many other members carry each answer to a query as well, for the sake of pairs that cannot reach each other.
const relays = 2

// node is the Serf node that an engine drives: one in this process (embedded), or a stock agent beside it (beside).
type node interface {
	roster
	messenger
	prober
	// goAway leaves the cluster and ends the node, all within the deadline as far as that can be had.
	goAway(deadline time.Time)
	// done is closed once the node is gone for good. It may be nil.
	done() <-chan struct{}
}

// roster is a node's membership. Only remove, setTags and join may block.
type roster interface {
	// members is Serf's list. It is not current while nobody can tell what Serf sees.
	members() (list []serf.Member, current bool)
	// leaving reports whether the application or an operator has asked Serf to leave.
	leaving(self string) bool
	// left reports whether it has done so.
	left(self string) bool
	// remove removes a member if Serf calls it failed at this moment.
	remove(id sbr.ID) (bool, error)
	// tag makes this node's tags those given.
	tag(all map[string]string) error
	// join joins an address; the name of who is expected there may be empty.
	join(name, addr string) error
}

// messenger sends one payload to every member that can be reached. Answers come until the time-out, then the channel is closed.
type messenger interface {
	query(name string, payload []byte, timeout time.Duration) (<-chan serf.NodeResponse, error)
}

// prober probes targets directly: no other member answers in their place. Those that it cannot probe are left out of the answer.
type prober interface {
	ping(ctx context.Context, targets map[sbr.ID]Target, timeout time.Duration) map[sbr.ID]pong
}

// pong is what became of a probe.
type pong struct {
	answered bool
	took     time.Duration
}

func isDone(n node) bool {
	select {
	case <-n.done():
		return true
	default:
		return false
	}
}

// embedded is the node of an application in this process.
type embedded struct {
	serf *serf.Serf
	// asking serializes queries: Serf gives two that are made at the same moment one number, and the answers to one are lost.
	asking turn
	// tagging serializes the setting of tags, which Serf keeps without a lock.
	tagging turn
}

func newNode(s *serf.Serf) *embedded {
	return &embedded{serf: s, asking: make(turn, 1), tagging: make(turn, 1)}
}

// turn is a lock that is held for a while: to a clock that can be stopped (testing/synctest), waiting for a mutex looks like work.
type turn chan struct{}

func (t turn) take() { t <- struct{}{} }
func (t turn) give() { <-t }

func (n *embedded) members() ([]serf.Member, bool) { return n.serf.Members(), true }

func (n *embedded) done() <-chan struct{} { return n.serf.ShutdownCh() }

// tag returns once the change has been told to somebody, which takes a while. Queries wait only until it is made: Serf reads the node's address for each
// of them without a lock, and writes it again with the tags.
func (n *embedded) tag(all map[string]string) error {
	n.tagging.take()
	defer n.tagging.give()
	return insist(func() error { return n.setTags(all) }, func() bool { return n.hasTags(all) })
}

// insist sets what Serf may drop without a word: memberlist does when this node refutes what is said of it at the same moment, as it has to when it comes back under the name
// of one that was downed. All that is seen of it is that the time for telling the others runs out, and the tags are not listed.
func insist(set func() error, listed func() bool) (err error) {
	for tries := 0; !listed(); tries++ {
		if tries == maxTagTries {
			return err
		}
		if err = set(); err == nil {
			return nil
		}
	}
	return nil
}

func (n *embedded) setTags(all map[string]string) error {
	told := make(chan error, 1)
	n.asking.take()
	go func() { told <- n.serf.SetTags(all) }()
	for range maxTagWaits {
		if n.hasTags(all) {
			break
		}
		select {
		case err := <-told:
			n.asking.give()
			return err
		case <-time.After(tagWait):
		}
	}
	n.asking.give()
	return <-told
}

// A change of tags is made in much less than maxTagWaits times tagWait.
const (
	tagWait     = time.Millisecond
	maxTagWaits = 100
	// maxTagTries is how often tags are set that are not listed then.
	maxTagTries = 5
)

func (n *embedded) hasTags(all map[string]string) bool {
	self := n.serf.Memberlist().LocalNode().Name
	for _, m := range n.serf.Members() {
		if m.Name == self {
			return maps.Equal(m.Tags, all)
		}
	}
	return false
}

func (n *embedded) join(name, addr string) error {
	if name != "" {
		addr = name + "/" + addr
	}
	_, err := n.serf.Join([]string{addr}, true)
	return err
}

func (n *embedded) leaving(self string) bool {
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

func (n *embedded) left(string) bool {
	s := n.serf.State()
	return s == serf.SerfLeft || s == serf.SerfShutdown
}

func (n *embedded) query(name string, payload []byte, timeout time.Duration) (<-chan serf.NodeResponse, error) {
	n.asking.take()
	defer n.asking.give()
	resp, err := n.serf.Query(name, payload, &serf.QueryParam{Timeout: timeout, RelayFactor: relays})
	if err != nil {
		return nil, err
	}
	return resp.ResponseCh(), nil
}

// A live node must never be removed: it would become a ghost that the cluster no longer lists but still talks to.
func (n *embedded) remove(id sbr.ID) (bool, error) {
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

// ping probes the targets at the same time.
func (n *embedded) ping(ctx context.Context, targets map[sbr.ID]Target, timeout time.Duration) map[sbr.ID]pong {
	return pingAll(ctx, targets, func(t Target) (answered, known bool) { return n.pingOne(t, timeout), true })
}

func pingAll(ctx context.Context, targets map[sbr.ID]Target, ping func(Target) (answered, known bool)) map[sbr.ID]pong {
	results := make(map[sbr.ID]pong, len(targets))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for id, t := range targets {
		wg.Go(func() {
			began := time.Now()
			answered, known := ping(t)
			took := time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			if known {
				results[id] = pong{answered: answered, took: took}
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return results
}

func (n *embedded) pingOne(t Target, timeout time.Duration) bool {
	addr, err := net.ResolveUDPAddr("udp", t.Addr)
	if err != nil {
		return false
	}
	rtt, err := n.serf.Memberlist().Ping(t.Name, addr)
	return err == nil && rtt <= timeout
}

// goAway leaves the cluster and shuts Serf down. Leave must have returned before Shutdown is called: Serf panics otherwise.
func (n *embedded) goAway(deadline time.Time) {
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
