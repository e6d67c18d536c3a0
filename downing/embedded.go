package downing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/internal/sleep"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Prepare implements driver.
func (e *engine) Prepare(ctx context.Context, conf *serf.Config) error {
	return e.enter(ctx, stageNew, stagePrepared, func(ctx context.Context) error { return e.prepare(ctx, conf) })
}

func (e *engine) prepare(ctx context.Context, conf *serf.Config) error {
	if err := checkSerf(conf); err != nil {
		return err
	}
	e.self = newIncarnation(conf.NodeName)
	e.keepOut = newKeepOut(conf.Merge, e.self.ID, e.onRefused)
	e.gossip = conf.MemberlistConfig
	if err := e.openLease(ctx); err != nil {
		return err
	}
	advise(conf, e.log) // once, however often Prepare was tried
	if err := e.announce(nil); err != nil {
		return err
	}
	conf.Tags = withTags(conf.Tags, e.tags)
	conf.Merge = e.keepOut
	e.firstEventIn = conf.CoalescePeriod + conf.QuiescentPeriod + 5*time.Second
	e.tap = newTap(conf.EventCh, e.onSerfEvent)
	conf.EventCh = e.tap.in
	roomForQueries(conf)
	e.show(e.firstStatus(sbr.StateArming))
	return nil
}

// checkSerf refuses configurations under which the resolver cannot work.
func checkSerf(conf *serf.Config) error {
	switch name := conf.NodeName; {
	case name == "":
		return errors.New("downing: serf.Config.NodeName is empty: set it before Prepare")
	case len(name) > serf.MaxNodeNameLength, !utf8.ValidString(name), strings.HasPrefix(name, untaggedPrefix):
		return fmt.Errorf("downing: serf.Config.NodeName is %q: it must be at most %d bytes of UTF-8 and not begin with %q", name, serf.MaxNodeNameLength, untaggedPrefix)
	case conf.ProtocolVersion < 4:
		return fmt.Errorf("downing: serf.Config.ProtocolVersion is %d: queries need at least 4",
			conf.ProtocolVersion)
	}
	return nil
}

// advise speaks of configurations that bite later.
func advise(conf *serf.Config, log *slog.Logger) {
	if conf.CoalescePeriod > 0 {
		log.Info("sbr: event coalescing is on; the resolver reads the member list and is not disturbed by it")
	}
	if conf.EnableNameConflictResolution {
		log.Info("sbr: name conflict resolution is on: a node that comes back under its old name at a new address within the failure window shuts itself down; prefer a name per incarnation")
	}
}

// queryOverhead is more than what Serf's queries and relayed answers hold beside the payload and names.
const queryOverhead = 200

// roomForQueries raises Serf's limits where they leave no room for a message and this node's name.
func roomForQueries(conf *serf.Config) {
	conf.QuerySizeLimit = max(conf.QuerySizeLimit, wire.MaxMessage+queryOverhead+len(conf.NodeName))
	conf.QueryResponseSizeLimit = max(conf.QueryResponseSizeLimit,
		wire.MaxMessage+queryOverhead+len(conf.NodeName)+serf.MaxNodeNameLength)
}

// Start implements driver.
func (e *engine) Start(ctx context.Context, s *serf.Serf) error {
	return e.enter(ctx, stagePrepared, stageStarted, func(ctx context.Context) error {
		if err := e.attach(ctx, s); err != nil {
			return err
		}
		return e.run()
	})
}

// attach finds out whether s is the node that was prepared, and whether everything that Prepare put into its
// configuration works: a node whose tags, events or merges pass this engine by is not protected.
func (e *engine) attach(ctx context.Context, s *serf.Serf) error {
	if s == nil || !slices.ContainsFunc(s.Members(), func(m serf.Member) bool { return idOf(&m) == e.self.ID }) {
		return fmt.Errorf("%w: no member of this node has the tags of the incarnation %s",
			ErrNotPrepared, e.self.ID)
	}
	e.node = newNode(s)
	if !e.keepOut.created.Load() {
		return fmt.Errorf("%w, and serf.Config.Merge must not be replaced after it", ErrNotPrepared)
	}
	late := time.After(e.firstEventIn)
	select {
	case <-e.tap.first: // a node's own join is its first event
		return ctx.Err()
	case <-s.ShutdownCh():
		return nil // the loop sees to that
	case <-late:
		return fmt.Errorf("%w, and serf.Config.EventCh must not be replaced after it", ErrNotPrepared)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// closeTap ends the tap once Serf is shut down: a living Serf would freeze on a channel that nobody reads.
func (e *engine) closeTap() {
	switch {
	case e.tap == nil:
	case e.node == nil && e.keepOut.created.Load():
		// Serf was created but never given to Start, so it is unknown whether it lives: better one goroutine
		// too many.
	case e.node == nil || isClosed(e.node.done()):
		e.tap.close()
	default:
		go func() {
			<-e.node.done()
			e.tap.close()
		}()
	}
}

// relays is how many other members carry each answer to a query as well, for the sake of pairs that cannot
// reach each other.
const relays = 2

// node is the Serf node that an engine drives: one in this process (embedded), or a stock agent beside it
// (beside). Only remove, tag, join, ping and goAway may block.
type node interface {
	// members is Serf's list, and when it was requested. While silence says why Serf cannot be asked, the
	// list is not current.
	members() (list []serf.Member, asked time.Time, silence error)
	// leaving reports whether the application or an operator has asked Serf to leave.
	leaving(self string) bool
	// left reports whether it has done so.
	left(self string) bool
	// remove removes a member if Serf calls it failed at this moment.
	remove(id sbr.ID) (bool, error)
	// tag makes the resolver's tags of this node those given, and leaves all others as they are.
	tag(own map[string]string) error
	// join joins an address; the name of the expected member may be empty.
	join(name, addr string) error
	// query sends one payload to every member that can be reached. Answers come until the time-out, then the
	// channel is closed.
	query(name string, payload []byte, timeout time.Duration) (<-chan serf.NodeResponse, error)
	// ping probes targets directly: no other member answers in their place. Those that it cannot probe are
	// left out.
	ping(ctx context.Context, targets map[sbr.ID]Target, timeout time.Duration) map[sbr.ID]pong
	// goAway leaves the cluster and ends the node, all within the deadline as far as that can be had.
	goAway(deadline time.Time)
	// done is closed once the node is gone for good. It may be nil.
	done() <-chan struct{}
}

// pong is what became of a probe.
type pong struct {
	answered bool
	took     time.Duration
}

// embedded is the node of an application in this process.
type embedded struct {
	serf *serf.Serf
	// asking serializes queries: Serf gives two that are made at the same moment one number, and the answers
	// to one are lost.
	asking turn
	// tagging serializes the setting of tags, which Serf keeps without a lock.
	tagging turn
	// joining serializes joins, as Serf does itself with a mutex; a dial into a cut takes many seconds.
	joining turn
}

func newNode(s *serf.Serf) *embedded {
	return &embedded{serf: s, asking: make(turn, 1), tagging: make(turn, 1), joining: make(turn, 1)}
}

// turn is a lock that is held for a while: to a clock that can be stopped (testing/synctest), waiting for a
// mutex looks like work.
type turn chan struct{}

func (t turn) take() { t <- struct{}{} }
func (t turn) give() { <-t }

func (n *embedded) members() ([]serf.Member, time.Time, error) {
	return n.serf.Members(), time.Now(), nil
}

func (n *embedded) done() <-chan struct{} { return n.serf.ShutdownCh() }

// tag returns once the change has been sent to a member, which takes a while. Queries wait only until it is
// made: Serf reads the node's address for each of them without a lock, and writes it again with the tags.
func (n *embedded) tag(own map[string]string) error {
	n.tagging.take()
	defer n.tagging.give()
	m := n.local()
	if m == nil {
		return errors.New("downing: the node does not list itself, so its tags cannot be set")
	}
	all := withTags(m.Tags, own)
	return insist(func() error { return n.setTags(all) }, func() bool { return n.hasTags(all) })
}

// insist retries set, which Serf may drop silently: memberlist drops an update while this node refutes a
// suspicion, as it has to after a restart under the name of a downed node. The only signs are a time-out of
// the broadcast, and tags that are not listed.
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

// local is this node as Serf lists it, nil if it does not.
func (n *embedded) local() *serf.Member {
	return named(n.serf.Members(), n.serf.Memberlist().LocalNode().Name)
}

func (n *embedded) hasTags(all map[string]string) bool {
	m := n.local()
	return m != nil && maps.Equal(m.Tags, all)
}

// named is the member of a name, nil if Serf does not list it.
func named(list []serf.Member, name string) *serf.Member {
	i := slices.IndexFunc(list, func(m serf.Member) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return &list[i]
}

func (n *embedded) join(name, addr string) error {
	if name != "" {
		addr = name + "/" + addr
	}
	n.joining.take()
	defer n.joining.give()
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
		// A Shutdown right after a Leave hides it. Its trace is the node's own status: no leave intent of
		// others changes that.
		m := named(n.serf.Members(), self) // nil: erased, which only a node is that leaves
		return m == nil || m.Status == serf.StatusLeaving || m.Status == serf.StatusLeft
	}
}

func (n *embedded) left(string) bool {
	s := n.serf.State()
	return s == serf.SerfLeft || s == serf.SerfShutdown
}

func (n *embedded) query(name string, payload []byte, timeout time.Duration) (
	<-chan serf.NodeResponse, error) {
	n.asking.take()
	defer n.asking.give()
	resp, err := n.serf.Query(name, payload, &serf.QueryParam{Timeout: timeout, RelayFactor: relays})
	if err != nil {
		return nil, err
	}
	return resp.ResponseCh(), nil
}

// A live node must never be removed: it would become a ghost that the cluster no longer lists but still talks
// to.
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
func (n *embedded) ping(ctx context.Context, targets map[sbr.ID]Target,
	timeout time.Duration) map[sbr.ID]pong {
	return pingAll(ctx, targets, func(t Target) (answered, known bool) { return n.pingOne(t, timeout), true })
}

func pingAll(ctx context.Context, targets map[sbr.ID]Target,
	ping func(Target) (answered, known bool)) map[sbr.ID]pong {
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

// goAway leaves the cluster and shuts Serf down. Leave must have returned before Shutdown is called: Serf
// panics otherwise.
func (n *embedded) goAway(deadline time.Time) {
	sleep.Within(time.After(time.Until(deadline)), func() {
		defer func() { _ = recover() }() // a Shutdown that overtook it: Serf is gone, which is what is wanted
		_ = n.serf.Leave()
		// Perhaps the application leaves already, and a Shutdown would make its Leave panic.
		for n.serf.State() == serf.SerfLeaving && time.Now().Before(deadline) {
			time.Sleep(20 * time.Millisecond)
		}
	})
	_ = n.serf.Shutdown()
}
