package downing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Peer is one member as what runs on top of a provider sees it.
type Peer struct {
	// Member is what the resolver knows: Status is Joining while it does not count yet, Leaving on its way
	// out, Down if it was downed and is not removed yet; Unreachable is this member's view.
	sbr.Member
	// Serves are the topics that the member offers (tag TagServes), sorted.
	Serves []string
	// Unseen says that this process cannot tell what the member offers, and that it may be anything: it knows it from
	// another member's message or from an earlier process, or the member was downed soon after it had come.
	Unseen bool
	since  time.Duration // when Serf first listed it here, on the engine's clock
}

// hides reports whether it is unknown what the member offered, if it is gone now.
func (p *Peer) hides(now time.Duration) bool { return p.Unseen || now-p.since < wire.OfferSpread }

// MayServe reports whether the member offers a topic, as far as this one knows.
func (p *Peer) MayServe(topic string) bool { return p.Unseen || slices.Contains(p.Serves, topic) }

// own makes the member share nothing with that of which it is a copy.
func (p *Peer) own() { p.Serves, p.Roles = slices.Clone(p.Serves), slices.Clone(p.Roles) }

// Peers are the members at one moment. The caller owns them.
type Peers struct {
	// Self is this member's incarnation.
	Self sbr.ID
	// State is that of this member; StateArming as well while it is a newcomer that takes no part yet.
	State sbr.State
	// Sure is the last moment at which this member saw nothing amiss: its state is up, only downed members
	// are unreachable, it does not check its standing after a pause, it sees its node, it is no newcomer and
	// is not leaving. Sure does not advance otherwise; zero: never yet. It lags behind what happens by the
	// time that failure detection takes. It has a monotonic reading, which stops while the machine is
	// suspended.
	Sure time.Time
	// Leader leads this side; empty when no member can.
	Leader sbr.ID
	// Verdict is the fencing token of the newest verdict that this member knows; zero when none was ever
	// written.
	Verdict uint64
	// List has this member and all others that run a provider, oldest first (sbr.Older).
	List []Peer
	// Gone are members that were downed, or are gone, within the last hour, the oldest first, at most a
	// thousand; none of them is in List unless it is Down.
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

// Peers returns the members as this one sees them now: the zero Peers before it has looked for the first
// time, and for the downing provider "none". It never blocks, and costs a copy of the list.
func (p *Provider) Peers() Peers { return p.engine.Peers() }

// Follow has f called after each change of Peers (not of Sure alone), and once more when Downed is closed.
// One call may report several changes, none is lost. Each function has its calls one at a time, on a
// goroutine of its own; it must not block, and may call every method of the Provider. A panic in it is
// logged. After stop no call begins; one may still be running.
func (p *Provider) Follow(f func()) (stop func()) { return p.life.followers.add(f) }

// MaxTalk is the largest payload of a question or an answer, in bytes.
const MaxTalk = wire.MaxPayload

// Errors of what runs on top of a Provider.
var (
	// ErrNoPeers is returned by Offer, Serve and Ask when the downing provider is "none".
	ErrNoPeers = errors.New("downing: this downing provider has no members to talk to: use split-brain-resolver")
	// ErrTopic is returned by Offer, Serve and Ask when a topic is not 1 to 63 of the characters a-z, 0-9,
	// '.', '_' and '-'.
	ErrTopic = wire.ErrTopic
	// ErrTopicTaken is returned by Serve when the topic has a handler already.
	ErrTopicTaken = errors.New("downing: the topic has a handler already: stop that one first")
	// ErrTagsFull is returned by Offer when the node's tags would exceed what Serf allows.
	ErrTagsFull = errors.New("downing: the tags of this node have no room for the topic: offer fewer or shorter topics, or take other tags out")
	// ErrNotMember is returned by Offer, Ask and Question.Answer when this member does not take part: its
	// provider was not started or was stopped, it is down, or has left. Ask returns it also when the target
	// is no member here, is down, or is this member itself.
	ErrNotMember = errors.New("downing: no member that takes part")
	// ErrTalkSize is returned by Ask and Question.Answer when a payload has more than MaxTalk bytes.
	ErrTalkSize = fmt.Errorf("downing: the payload has more than %d bytes", MaxTalk)
	// ErrTalkBusy is returned by Ask when this member asks too much: questions share the gossip with what
	// keeps the cluster together.
	ErrTalkBusy = errors.New("downing: this member has too many questions open, or asks too fast: ask again later")
	// ErrTooLate is returned by Question.Answer when the time for answers is over, or the question was
	// answered already.
	ErrTooLate = errors.New("downing: the question is no longer open")
)

// Question is a question of another member.
type Question struct {
	From    sbr.ID
	Payload []byte
	// Answer sends the answer, once, from any goroutine. It does not wait for the delivery; a member without
	// an answer can ask again. Errors: ErrTooLate, ErrTalkSize, ErrNotMember, and those of Serf, after which
	// it may be tried again.
	Answer func(payload []byte) error
}

// Answer is what one member answered.
type Answer struct {
	From    sbr.ID
	Payload []byte
	// Unserved says that that member's process does not serve the topic. Its provider says so, at once.
	Unserved bool
}

// Offer announces that this member serves a topic, or does not any more: it puts the topic into its node's
// tag TagServes, or takes it out. It returns once Serf has begun to broadcast it; it does not wait when a
// topic is taken out, since a request for it gets the answer unserved, and where the tags of several members
// change at once memberlist may lose the message and wait for five seconds. What was offered last holds:
// after an error of ctx or of the node it is tried again, until this member is down, leaves or is stopped. A
// process that starts offers nothing. Errors: ErrNoPeers, ErrTopic, ErrTagsFull, ErrNotMember, that of ctx,
// and those of the node.
func (p *Provider) Offer(ctx context.Context, topic string, on bool) error {
	return p.engine.Offer(ctx, topic, on)
}

// Serve has f called with each question of a topic that another member asks this one, one at a time. f must
// not block: it may keep the question and answer later. Questions that it has no time for are dropped, as is
// whatever is lost on the way. A panic in f is logged. Serve may be called before Start; other members do not
// learn of it (see Offer). After stop no call begins, and the topic is unserved. Errors: ErrNoPeers,
// ErrTopic, ErrTopicTaken.
func (p *Provider) Serve(topic string, f func(Question)) (stop func(), err error) {
	return p.engine.Serve(topic, f)
}

// Ask asks one member, or with an empty to every other member. Each answers at most once; what it says counts
// only while it is a member here, or was when it was asked, and was not downed. The channel is closed at the
// time-out (1 ms to 10 min), once the one member that was asked has answered, and when this member goes down
// or is stopped. It has room for all answers: it need not be read. Questions and answers can be lost: silence
// means nothing.
//
// A question is gossiped to the whole cluster, even if it asks one member, so ask rarely: each takes a share
// of what the resolver's own messages use. Errors: ErrNoPeers, ErrTopic, ErrTalkSize, ErrTalkBusy,
// ErrNotMember, and for an impossible time-out.
func (p *Provider) Ask(topic string, to sbr.ID, payload []byte, timeout time.Duration) (
	<-chan Answer, error) {
	return p.engine.Ask(topic, to, payload, timeout)
}

// board is what the loop puts up of the members. It is never changed, only replaced.
type board struct {
	peers Peers
	index map[wire.Key]*Peer
}

// Peers implements driver. It copies the lists, and what they hold.
func (e *engine) Peers() Peers {
	p := e.board.Load().peers
	if e.life.isOver() {
		p.State = sbr.StateDown // also where the loop is stuck and publishes nothing any more
	}
	p.List, p.Gone = slices.Clone(p.List), slices.Clone(p.Gone)
	for i := range p.List {
		p.List[i].own()
	}
	for i := range p.Gone {
		p.Gone[i].own()
	}
	return p
}

// share puts the members up. Loop only.
func (e *engine) share(s *sbr.Snapshot, state sbr.State) {
	b := *e.board.Load()
	last := b.peers
	next := &b.peers
	next.Self, next.State, next.Leader, next.Verdict = s.Self, state, s.Leader, s.Verdict.Token
	changed := next.Self != last.Self || state != last.State || s.Leader != last.Leader ||
		next.Verdict != last.Verdict
	if list := e.peerList(s, last.List); !slices.EqualFunc(list, last.List, samePeer) {
		next.List, b.index = list, indexOf(list)
		next.Gone = departures(last.Gone, last.List, list, time.Now(), e.now())
		changed = true
	}
	if state == sbr.StateUp && !e.newcomer && !e.leaving {
		next.Sure = e.lookedAt
	}
	e.board.Store(&b)
	if changed {
		e.life.followers.changed()
	}
}

func samePeer(a, b Peer) bool {
	return a.Unreachable == b.Unreachable && a.Unseen == b.Unseen && sameMember(&a.Member, &b.Member) &&
		slices.Equal(a.Serves, b.Serves)
}

// peerList makes the list anew. Of members that were down in the last one, what is unseen stays so.
func (e *engine) peerList(s *sbr.Snapshot, last []Peer) []Peer {
	list := make([]Peer, 0, len(s.Members))
	for i := range s.Members {
		p := Peer{Member: s.Members[i]}
		if isUntagged(p.ID) {
			continue
		}
		tags, since := e.members.tags(p.ID)
		p.Serves, p.Unseen, p.since = topics(tags[TagServes]), tags == nil, since
		if p.Status == sbr.Down {
			p.Unseen = p.wasUnseen(last, e.now())
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

// wasUnseen reports whether it was unknown what a member offered when it was downed.
func (p *Peer) wasUnseen(last []Peer, now time.Duration) bool {
	for i := range last {
		if last[i].ID == p.ID && last[i].Status == sbr.Down {
			return last[i].Unseen
		}
	}
	return p.hides(now)
}

func indexOf(list []Peer) map[wire.Key]*Peer {
	index := make(map[wire.Key]*Peer, len(list))
	for i := range list {
		index[wire.KeyOf(list[i].ID)] = &list[i]
	}
	return index
}

// topics reads the tag of another member. What is no topic is left out.
func topics(tag string) (list []string) {
	for topic := range strings.SplitSeq(tag, ",") {
		if wire.CheckTopic(topic) == nil {
			list = append(list, topic)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Departure is a member that was downed, or is gone.
type Departure struct {
	// Peer is the member as it was when it was last seen.
	Peer
	// At is when that was noticed here, with a monotonic reading.
	At time.Time
}

// Departures are remembered so that what is opened later waits for the margins that it would have begun: for
// an hour, and the newest thousand.
const (
	departedFor   = time.Hour
	departedCount = 1000
)

// departures adds to known the members that are down or missing in next and were neither in last, and takes
// out those that are back. clock is the engine's.
func departures(known []Departure, last, next []Peer, now time.Time, clock time.Duration) []Departure {
	here := make(map[sbr.ID]bool, len(next))
	for i := range next {
		here[next[i].ID] = next[i].Status != sbr.Down
	}
	list := slices.DeleteFunc(slices.Clone(known), func(d Departure) bool {
		return here[d.ID] || now.Sub(d.At) > departedFor
	})
	told := make(map[sbr.ID]bool, len(list))
	for i := range list {
		told[list[i].ID] = true
	}
	for i := range last { // members that were down then are listed, or were for long enough
		told[last[i].ID] = told[last[i].ID] || last[i].Status == sbr.Down
	}
	for _, p := range slices.Concat(last, next) {
		if !here[p.ID] && !told[p.ID] {
			told[p.ID] = true
			p.Unseen = p.hides(clock)
			list = append(list, Departure{p, now})
		}
	}
	return list[max(0, len(list)-departedCount):]
}
