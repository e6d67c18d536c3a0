package downing

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/downing/talk"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Peer is one member as what runs on top of a provider sees it.
type Peer struct {
	// Member is what the resolver knows: Status Joining for one that does not count yet, Leaving for one on its way out, Down for one that was
	// downed and is not removed yet; Unreachable as this member sees it.
	sbr.Member
	// Serves are the topics that the member offers (tag TagServes), sorted.
	Serves []string
}

// Peers are the members at one moment. Whoever gets them owns them.
type Peers struct {
	// Self is this member's incarnation.
	Self sbr.ID
	// State is that of this member.
	State sbr.State
	// Sure is the last moment at which this member saw nothing amiss: its state is up, nobody is unreachable who was not downed, it does not check its
	// fate after a pause, it sees its node, it is no newcomer and is not leaving. It stands still otherwise; zero: never yet. It lags behind what happens by
	// the time that failure detection takes. It has a monotonic reading, which stands still while the machine is suspended.
	Sure time.Time
	// Leader leads this side; empty when nobody can.
	Leader sbr.ID
	// Verdict is the fencing token of the newest verdict that this member knows; zero when none was ever written.
	Verdict uint64
	// List has this member and all others that run a provider, oldest first (sbr.Older).
	List []Peer
	// Gone are members that were downed, or are gone, within the last hour, the oldest first, at most a thousand; none of them is in List unless it is Down.
	Gone []Departure
}

// Find returns a member of the list, nil if it is not there.
func (p *Peers) Find(id sbr.ID) *Peer {
	for i := range p.List {
		if p.List[i].ID == id && id != "" {
			return &p.List[i]
		}
	}
	return nil
}

// Peers returns the members as this one sees them now: the zero Peers before it has looked for the first time, and for a downing provider that has none to
// show ("none", or one of your own). It never blocks, and costs a copy of the list.
func (p *Provider) Peers() Peers {
	h, ok := p.engine.(host)
	if !ok {
		return Peers{}
	}
	peers := h.Peers()
	if p.life.isOver() {
		peers.State = sbr.StateDown // also where the loop is stuck and can tell nothing any more
	}
	return peers
}

// Follow has f called after each change of Peers (not of Sure alone), and once more when Downed is closed. Several changes may be told by one call, none
// is lost. Each function has its calls one at a time, on a goroutine of its own; it must not block, and may call every method of the Provider. A panic in
// it is logged. After stop no call begins; one may still be running.
func (p *Provider) Follow(f func()) (stop func()) { return p.life.followers.add(f) }

// host is an Engine that shows its members, and lets them talk.
type host interface {
	Peers() Peers
	Offer(ctx context.Context, topic string, on bool) error
	Serve(topic string, f func(Question)) (stop func(), err error)
	Ask(topic string, to sbr.ID, payload []byte, timeout time.Duration) (<-chan Answer, error)
}

// board is where the loop puts up the members. The loop alone writes.
type board struct {
	mu    sync.Mutex
	peers Peers // its lists are never changed, only replaced
	index map[talk.Key]*Peer

	// What the list was made of. Loop only.
	members []sbr.Member
	serves  uint64
	leaving bool
}

// Peers implements host.
func (e *engine) Peers() Peers {
	peers, _ := e.board.read()
	return peers.clone()
}

// read returns what must not be changed.
func (b *board) read() (Peers, map[talk.Key]*Peer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.peers, b.index
}

// clone copies the lists, in three allocations however long they are.
func (p Peers) clone() Peers {
	var texts int
	for i := range p.List {
		texts += len(p.List[i].Serves) + len(p.List[i].Roles)
	}
	shared := make([]string, 0, texts)
	own := func(list []string) []string {
		if list == nil {
			return nil
		}
		shared = append(shared, list...)
		return slices.Clip(shared[len(shared)-len(list):])
	}
	p.List = slices.Clone(p.List)
	for i := range p.List {
		p.List[i].Serves, p.List[i].Roles = own(p.List[i].Serves), own(p.List[i].Roles)
	}
	p.Gone = slices.Clone(p.Gone)
	for i := range p.Gone {
		p.Gone[i].Serves = slices.Clone(p.Gone[i].Serves)
	}
	return p
}

// share puts the members up. In peace it compares and makes nothing. Loop only.
func (e *engine) share(s *sbr.Snapshot, state sbr.State) {
	b := &e.board
	next, index := b.read()
	sure := state == sbr.StateUp && !e.newcomer && !e.leaving
	same := next.Self != "" && next.State == state && next.Leader == s.Leader && next.Verdict == s.Verdict.Token
	if b.outdated(e, s) {
		same = false
		b.members, b.serves, b.leaving = s.Members, e.members.serves, e.leaving
		last := next.List
		next.List = e.peerList(s)
		next.Gone = departures(next.Gone, last, next.List, time.Now())
		index = indexOf(next.List)
	}
	next.Self, next.State, next.Leader, next.Verdict = s.Self, state, s.Leader, s.Verdict.Token
	if sure {
		next.Sure = e.lookedAt
	}
	b.mu.Lock()
	b.peers, b.index = next, index
	b.mu.Unlock()
	if !same {
		e.life.followers.changed()
	}
}

func (b *board) outdated(e *engine, s *sbr.Snapshot) bool {
	return b.serves != e.members.serves || b.leaving != e.leaving ||
		!slices.EqualFunc(b.members, s.Members, func(a, b sbr.Member) bool { return a.Unreachable == b.Unreachable && sameMember(&a, &b) })
}

// peerList makes the list anew.
func (e *engine) peerList(s *sbr.Snapshot) []Peer {
	list := make([]Peer, 0, len(s.Members))
	for i := range s.Members {
		p := Peer{Member: s.Members[i]}
		if isUntagged(p.ID) {
			continue
		}
		if k := e.members.known[p.ID]; k != nil {
			p.Serves = topics(k.serves)
		}
		if p.ID == s.Self && e.leaving && p.Status < sbr.Leaving {
			p.Status = sbr.Leaving
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b Peer) int {
		switch {
		case sbr.Older(&a.Member, &b.Member):
			return -1
		case sbr.Older(&b.Member, &a.Member):
			return 1
		default:
			return 0
		}
	})
	return list
}

func indexOf(list []Peer) map[talk.Key]*Peer {
	index := make(map[talk.Key]*Peer, len(list))
	for i := range list {
		index[talk.KeyOf(list[i].ID)] = &list[i]
	}
	return index
}

// topics reads the tag of another member. What is no topic is left out.
func topics(tag string) (list []string) {
	for topic := range strings.SplitSeq(tag, ",") {
		if talk.CheckTopic(topic) == nil {
			list = append(list, topic)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
