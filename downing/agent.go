package downing

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/serf/serf"

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
	// ErrAgentTimeout: the agent is there and says nothing, as one that is frozen.
	ErrAgentTimeout = errors.New("time-out")
	// ErrAgentClosed: the agent ended the connection before it answered.
	ErrAgentClosed = errors.New("the connection was closed")
)

// Agent is a Serf node in another process, beside which a Provider works (see Provider.Beside). Package agentrpc has the one that
// reaches a stock `serf agent` over its RPC port. All methods are safe for concurrent use.
type Agent interface {
	AgentRoster
	AgentMessenger
	// Open connects, retrying until ctx ends, and returns the agent's own node as Serf lists it. It is called once.
	// From then on events are delivered until Close, and a lost connection is made again.
	Open(ctx context.Context, events AgentEvents) (serf.Member, error)
	// Leave makes the node leave its cluster. A stock agent ends itself after that.
	Leave(ctx context.Context) error
	// Close ends everything that Open started. The node stays as it is.
	Close()
}

// AgentRoster is the membership that the agent knows. If it has a method ReadAt() time.Time as well, that says when the present list was asked for: this
// member is sure of nothing younger (Peers.Sure). Without it a list that is current counts as read just now. If it has a method Silence() error, that says why
// the list is not current: one of the errors below, or whatever wraps it.
type AgentRoster interface {
	// Members is Serf's list as it was last read; it never blocks. It is current from one reading to the moment in which the agent fails to
	// answer the next. A restarted agent has forgotten the others: whoever it does not list any more, and did not list as left or
	// removed before, is listed as failed.
	Members() (list []serf.Member, current bool)
	// Tag sets and deletes tags of the agent's own node and leaves all others as they are.
	Tag(ctx context.Context, set map[string]string, remove []string) error
	// Join makes the agent join a member at an address again; name is empty where nobody knows who is there.
	Join(ctx context.Context, name, addr string) error
	// Remove removes a member that Serf calls failed at this moment; any other it leaves alone.
	Remove(ctx context.Context, name string) (removed bool, err error)
}

// AgentMessenger sends messages to all members.
type AgentMessenger interface {
	// Query sends a payload as a Serf query. Answers come until the time-out, then the channel is closed; nobody needs to read it.
	Query(name string, payload []byte, timeout time.Duration) (<-chan serf.NodeResponse, error)
}

// AgentEvents are what an Agent reports. The functions must not block, and are called one at a time.
type AgentEvents struct {
	// Changed says that the membership, or whether it is current, may have changed.
	Changed func()
	// Query is one of the queries called name that another member sent. from is empty where the agent does not say.
	Query func(name, from string, payload []byte, respond func(payload []byte) error)
}

// Prober probes the members directly where Serf itself cannot be asked to; package probe has one. It is safe for concurrent use.
type Prober interface {
	// Announce makes this member answer the probes for an incarnation, for none if it is empty, and returns the tag that tells the others where.
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
