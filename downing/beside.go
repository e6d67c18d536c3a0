package downing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/internal/sleep"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Why a Serf agent beside a member does not answer.
var (
	// ErrAgentSilent: no answer came, and nothing more is known.
	ErrAgentSilent = errors.New("nothing more is known")
	// ErrAgentRefused: nothing listens at the RPC address.
	ErrAgentRefused = errors.New("connection refused (does it run, with this rpc_addr?)")
	// ErrAgentAuth: the agent wants an auth key, or another one.
	ErrAgentAuth = errors.New("the Serf agent refuses the RPC auth key: set rpc-auth-key to the agent's rpc_auth")
	// ErrAgentTimeout: the agent is there but does not answer, like a frozen process.
	ErrAgentTimeout = errors.New("time-out")
	// ErrAgentClosed: the agent ended the connection before it answered.
	ErrAgentClosed = errors.New("the connection was closed")
)

// Agent is a Serf node in another process, beside which a Provider works (see Provider.Beside). Package
// agentrpc implements it for a stock `serf agent`, over its RPC port. All methods are safe for concurrent
// use.
type Agent interface {
	// Open connects, retrying until ctx ends, and returns the agent's own node as Serf lists it. It is not
	// called after Close. From then on events are delivered until Close, and a lost connection is made again.
	Open(ctx context.Context, events AgentEvents) (serf.Member, error)
	// Members is Serf's list as it was last read, and when it was asked for: this member is sure of nothing
	// younger (Peers.Sure). It never blocks. The list is current from one reading to the moment in which the
	// agent fails to answer the next; from then on silence says why: one of the errors above, or whatever
	// wraps it. A restarted agent has forgotten the others, and its tags: a member that the agent lists no
	// longer, and did not list as left or removed before, is listed as failed.
	Members() (list []serf.Member, asked time.Time, silence error)
	// Tag sets and deletes tags of the agent's own node and leaves all others as they are.
	Tag(ctx context.Context, set map[string]string, remove []string) error
	// Join makes the agent join a member at an address again; name is empty where the member there is not
	// known.
	Join(ctx context.Context, name, addr string) error
	// Remove removes a member that Serf calls failed at this moment; any other it leaves alone.
	Remove(ctx context.Context, name string) (removed bool, err error)
	// Query sends a payload as a Serf query. Answers come until the time-out, then the channel is closed; it
	// need not be read.
	Query(name string, payload []byte, timeout time.Duration) (<-chan serf.NodeResponse, error)
	// Leave makes the node leave its cluster. A stock agent ends itself after that.
	Leave(ctx context.Context) error
	// Close ends everything that Open started. The node stays as it is.
	Close()
}

// AgentEvents are what an Agent reports. The functions must not block, and are called one at a time.
type AgentEvents struct {
	// Changed says that the membership, or whether it is current, may have changed.
	Changed func()
	// Query is one of the queries called name that another member sent. from is empty where the agent does
	// not say.
	Query func(name, from string, payload []byte, respond func(payload []byte) error)
}

// Prober probes the members directly where Serf itself cannot be asked to; package probe has one. It is safe
// for concurrent use.
type Prober interface {
	// Announce makes this member answer the probes for an incarnation, for none if it is empty, and returns
	// the tag that tells the others where.
	Announce(id sbr.ID) (tag string)
	// Ping reports whether an incarnation answered within the time-out.
	Ping(ctx context.Context, t Target, timeout time.Duration) bool
}

// Target is a member to probe.
type Target struct {
	ID sbr.ID
	// Name and Addr (host:port) are those of its Serf node.
	Name, Addr string
	// Tag is what its Prober announced; empty if it has none.
	Tag string
}

// Beside implements driver: Prepare and Start in one, for a node that runs already.
func (e *engine) Beside(ctx context.Context, agent Agent, p Prober) error {
	return e.enter(ctx, stageNew, stageStarted, func(ctx context.Context) error {
		return e.startBeside(ctx, agent, p)
	})
}

func (e *engine) startBeside(ctx context.Context, agent Agent, p Prober) (err error) {
	self, err := agent.Open(ctx, AgentEvents{Changed: e.lookSoon, Query: e.onQuery})
	if err != nil {
		return fmt.Errorf("downing: %w", err)
	}
	e.identify(&self)
	e.node = &beside{agent: agent, prober: p, ctx: e.ctx, adopted: e.adopted}
	defer func() {
		if err != nil {
			agent.Close()
			e.node = nil
		}
	}()
	e.gossip = e.cfg.Gossip
	if p == nil {
		e.cfg.Probe.Neighbours = 0
	}
	e.keepOut = newKeepOut(nil, e.self.ID, e.onRefused)
	if err := e.openLease(ctx); err != nil {
		return err
	}
	if err := e.announce(p); err != nil {
		return err
	}
	if err := e.firstTag(ctx, agent); err != nil {
		return err
	}
	e.show(e.firstStatus(sbr.StateArming))
	e.tagsListed = time.Now().Add(tagsEvery) // the agent may be asked for its members before that
	return e.run()
}

// checkFate asks what was decided about this incarnation since its earlier process stopped. Loop only.
func (e *engine) checkFate() {
	e.hold(byAdoption, "an earlier process of this incarnation stopped; checking for a verdict")
	e.step(sbr.Resumed{Gap: e.cfg.PauseAfter})
}

// firstTag sets the tags, retrying until ctx ends: an agent that has gone meanwhile may come back.
func (e *engine) firstTag(ctx context.Context, agent Agent) error {
	stale := []string{TagServes} // an earlier process served it
	if e.storeID == "" {
		stale = append(stale, TagStore)
	}
	if !e.adopted || e.adoptedIn < 0 {
		stale = append(stale, TagIn) // of a downed predecessor; this member has found no cluster yet
	}
	for {
		err := agent.Tag(ctx, e.tags, stale)
		if err == nil {
			return nil
		}
		e.log.Error("sbr: the tags of the Serf agent could not be set, trying again", "error", err)
		if sleep.For(ctx, e.cfg.Resolver.LeaseRetry) != nil {
			return fmt.Errorf("downing: the tags of the Serf agent: %w: %w", ctx.Err(), err)
		}
	}
}

// part ends the work beside an agent. Unless this member is down, which takes care of itself, its tags are
// taken back: it is no member any more.
func (n *beside) part(ctx context.Context, down, keepTags bool) (resigned bool) {
	switch {
	case down:
	case keepTags:
		n.unserve(ctx) // until the next process is there nobody answers
	default:
		n.untag(ctx)
		resigned = true
	}
	n.agent.Close()
	return resigned
}

// identify finds out the incarnation of this member. A stock agent keeps its tags for as long as it runs: if
// they name an incarnation, it is the predecessor, which stopped in the middle of its life. Decisions about
// the predecessor hold.
func (e *engine) identify(self *serf.Member) {
	e.adopted, e.adoptedIn, e.aged = false, 0, 0
	last := e.cfg.Memory.load()
	if old := idOf(self); !isUntagged(old) && !(last.Over && last.Incarnation == string(old)) {
		e.self = memberOf(self, sbr.Joining)
		if e.adopted, e.adoptedIn = true, parse36(self.Tags[TagIn]); isNew(self.Tags[TagIn]) {
			e.adoptedIn = -1
		}
		e.aged = max(time.Since(time.UnixMilli(e.self.Born)), 0)
		e.log.Warn("sbr: goes on as the incarnation that the Serf agent's tags name: an earlier process stopped without taking them back", "incarnation", string(old))
		return
	}
	e.self = newIncarnation(self.Name)
}

// ourTags are those that a member without a resolver does not have.
var ourTags = []string{TagUID, TagBorn, TagSeen, TagConfig, TagStore, TagIn, TagProbe, TagServes,
	TagVersion, TagWas}

// announce puts together the tags of this member, and remembers that it begins.
func (e *engine) announce(p Prober) error {
	was, err := e.begin()
	if err != nil {
		return err
	}
	e.tags = map[string]string{
		TagUID: uidOf(e.self.ID), TagBorn: format36(e.self.Born), TagSeen: format36(int64(e.self.Seen)),
		TagConfig: e.digest, TagVersion: wireVersion,
	}
	if was != "" {
		e.tags[TagWas] = was
	}
	if e.storeID != "" {
		e.tags[TagStore] = e.storeID
	}
	if p != nil {
		e.tags[TagProbe] = p.Announce(e.self.ID)
	}
	return nil
}

const (
	// agentTime bounds one request to the agent.
	agentTime = 5 * time.Second
	// joinTime bounds a join. The agent dials for 10 s, on profile WAN for 30 s, and goes on when nobody waits any
	// more: joins that were given up would queue up in it.
	joinTime = 35 * time.Second
)

// beside is the node of a stock agent in another process.
type beside struct {
	agent  Agent
	prober Prober
	ctx    context.Context
	// adopted says that the tags were there before this process.
	adopted bool
}

func (n *beside) members() ([]serf.Member, time.Time, error) { return n.agent.Members() }

// done is never closed: an agent that is gone may come back.
func (n *beside) done() <-chan struct{} { return nil }

func (n *beside) leaving(self string) bool {
	s := n.status(self)
	return s == serf.StatusLeaving || s == serf.StatusLeft
}

func (n *beside) left(self string) bool { return n.status(self) == serf.StatusLeft }

// status is what the agent says of its own node.
func (n *beside) status(self string) serf.MemberStatus {
	list, _, _ := n.agent.Members()
	if m := named(list, self); m != nil {
		return m.Status
	}
	return serf.StatusNone
}

func (n *beside) remove(id sbr.ID) (bool, error) {
	list, _, silence := n.agent.Members()
	for i := range list {
		if silence == nil && isNodeOf(&list[i], id) && list[i].Status == serf.StatusFailed {
			ctx, cancel := context.WithTimeout(n.ctx, agentTime)
			defer cancel()
			return n.agent.Remove(ctx, list[i].Name)
		}
	}
	return false, nil
}

// tag leaves the operator's tags alone: the operator may change them at the same time.
func (n *beside) tag(own map[string]string) error {
	ctx, cancel := context.WithTimeout(n.ctx, agentTime)
	defer cancel()
	var none []string
	if _, serves := own[TagServes]; !serves {
		none = []string{TagServes}
	}
	return n.agent.Tag(ctx, own, none)
}

func (n *beside) join(name, addr string) error {
	ctx, cancel := context.WithTimeout(n.ctx, joinTime)
	defer cancel()
	return n.agent.Join(ctx, name, addr)
}

func (n *beside) query(name string, payload []byte, timeout time.Duration) (<-chan serf.NodeResponse, error) {
	return n.agent.Query(name, payload, timeout)
}

func (n *beside) ping(ctx context.Context, targets map[sbr.ID]Target, timeout time.Duration) map[sbr.ID]pong {
	if n.prober == nil {
		return nil
	}
	return pingAll(ctx, targets, func(t Target) (answered, known bool) {
		if t.Tag == "" {
			return false, false // a member that runs no prober: Serf's word counts
		}
		return n.prober.Ping(ctx, t, timeout), true
	})
}

// untagTime bounds how long the agent may take to forget this incarnation. Its tags may outlive it in a file.
const untagTime = 2 * time.Second

// answerProbes makes this member answer the probes of others, or not. A member with a silent agent must not:
// its reports do not arrive, so no member should wait for them.
func (n *beside) answerProbes(id sbr.ID, yes bool) {
	if n.prober == nil {
		return
	}
	if !yes {
		id = ""
	}
	n.prober.Announce(id)
}

// goAway makes the agent leave. The tags stay: a member that does not receive the leave sees this incarnation
// as failed. Should the agent keep them in a file, Config.Memory knows the incarnation.
func (n *beside) goAway(deadline time.Time) {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	if n.adopted {
		n.untag(ctx) // they outlived a process already, and may outlive the agent
	}
	_ = n.agent.Leave(ctx) // the others find out without it
}

// unserve withdraws the topics that this node serves.
func (n *beside) unserve(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, untagTime)
	defer cancel()
	_ = n.agent.Tag(ctx, nil, []string{TagServes}) // later requests are not answered
}

func (n *beside) untag(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, untagTime)
	defer cancel()
	_ = n.agent.Tag(ctx, map[string]string{TagUID: ""}, ourTags) // empty: resigned; missing: forgotten
}
