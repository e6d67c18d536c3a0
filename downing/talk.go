package downing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/downing/talk"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// MaxTalk is the largest payload of a question or an answer, in bytes.
const MaxTalk = talk.MaxPayload

// Errors of what runs on top of a Provider.
var (
	// ErrNoPeers is returned by Offer, Serve and Ask when the downing provider ("none", or one of your own) has no members to talk to.
	ErrNoPeers = errors.New("downing: this downing provider has no members to talk to: use split-brain-resolver")
	// ErrTopic is returned by Offer, Serve and Ask when a topic is not 1 to 63 of the characters a-z, 0-9, '.', '_' and '-'.
	ErrTopic = talk.ErrTopic
	// ErrTopicTaken is returned by Serve when the topic has a handler already.
	ErrTopicTaken = errors.New("downing: the topic has a handler already: stop that one first")
	// ErrTagsFull is returned by Offer when the node's tags would exceed what Serf allows.
	ErrTagsFull = errors.New("downing: the tags of this node have no room for the topic: offer fewer or shorter topics, or take other tags out")
	// ErrNotMember is returned by Offer, Ask and Question.Answer when this member does not take part: its provider was not started or was stopped, it is
	// down, or has left. Ask returns it also when whom it asks is no member here, is down, or is this member itself.
	ErrNotMember = errors.New("downing: no member that takes part")
	// ErrTalkSize is returned by Ask and Question.Answer when a payload has more than MaxTalk bytes.
	ErrTalkSize = fmt.Errorf("downing: the payload has more than %d bytes", MaxTalk)
	// ErrTalkBusy is returned by Ask when this member asks too much: questions share the gossip with what keeps the cluster together.
	ErrTalkBusy = errors.New("downing: this member has too many questions open, or asks too fast: ask again later")
	// ErrTooLate is returned by Question.Answer when the time for answers is over, or the question was answered already.
	ErrTooLate = errors.New("downing: the question is no longer open")
)

// Question is a question of another member.
type Question struct {
	From    sbr.ID
	Payload []byte
	// Answer sends the answer, once, from any goroutine. It does not wait until it has arrived; to whom it matters asks again. Errors: ErrTooLate,
	// ErrTalkSize, ErrNotMember, and those of Serf, after which it may be tried again.
	Answer func(payload []byte) error
}

// Answer is what one member answered.
type Answer struct {
	From    sbr.ID
	Payload []byte
	// Unserved says that nobody serves the topic in that member's process. Its provider says so, at once.
	Unserved bool
}

// Offer tells all members that this one serves a topic, or does not any more: it puts the topic into its node's tag TagServes, or takes it out. It returns
// once Serf has begun to tell the others. What was offered last holds: after an error of ctx or of the node it is tried again, until this member is down,
// leaves or is stopped. A process that starts offers nothing. Errors: ErrNoPeers, ErrTopic, ErrTagsFull, ErrNotMember, that of ctx, and those of the node.
func (p *Provider) Offer(ctx context.Context, topic string, on bool) error {
	h, ok := p.engine.(host)
	if !ok {
		return ErrNoPeers
	}
	return h.Offer(ctx, topic, on)
}

// Serve has f called with each question of a topic that another member asks this one, one at a time. f must not block: it may keep the question and answer
// later. Questions that it has no time for are dropped, as is whatever is lost on the way. A panic in f is logged. Serve may be called before Start; it is
// not told to anybody (see Offer). After stop no call begins, and the topic is unserved. Errors: ErrNoPeers, ErrTopic, ErrTopicTaken.
func (p *Provider) Serve(topic string, f func(Question)) (stop func(), err error) {
	h, ok := p.engine.(host)
	if !ok {
		return nil, ErrNoPeers
	}
	return h.Serve(topic, f)
}

// Ask asks one member, or with an empty to every other member. Each answers at most once; what it says counts only while it is a member here, or was when it
// was asked, and was not downed. The channel is closed at the time-out (1 ms to 10 min), once the one member that was asked has answered, and when this
// member goes down or is stopped. It has room for all answers: nobody needs to read it. Questions and answers can be lost: silence means nothing.
//
// A question is gossiped to the whole cluster, whomever it asks, so ask rarely: each takes a share of what the resolver's own messages use.
// Errors: ErrNoPeers, ErrTopic, ErrTalkSize, ErrTalkBusy, ErrNotMember, and for an impossible time-out.
func (p *Provider) Ask(topic string, to sbr.ID, payload []byte, timeout time.Duration) (<-chan Answer, error) {
	h, ok := p.engine.(host)
	if !ok {
		return nil, ErrNoPeers
	}
	return h.Ask(topic, to, payload, timeout)
}
