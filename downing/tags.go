package downing

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// The tags that tell incarnations apart. Together they take about 80 of Serf's 512 bytes.
const (
	TagUID    = "sbr_uid"   // random, new at each start
	TagBorn   = "sbr_born"  // Unix milliseconds, base 36
	TagSeen   = "sbr_seen"  // fencing token read at the start, base 36
	TagConfig = "sbr_cfg"   // digest of the safety-relevant settings
	TagStore  = "sbr_store" // which store keeps the lease; absent: that is not known
	TagIn     = "sbr_in"    // fencing token of the verdict whose cluster it has found, base 36; or lookingFor
	TagProbe  = "sbr_udp"   // where this member answers probes, if its node cannot
	TagServes = "sbr_one"   // the topics that it serves (Provider.Offer), separated by commas
	// version of what members say to each other; absent: 1, whose members say no goodbye
	TagVersion = "sbr_v"
	TagWas     = "sbr_was" // the uids of its predecessors, which have ended for certain, separated by commas
	TagRole    = "role"    // Serf's own convention; several roles are separated by commas
)

// The TagIn of a new member that has waited. They are no numbers, so that they count as zero for members of
// an earlier version.
const (
	lookingFor = "-" // it takes no part yet
	entering   = "+" // it takes part in a moment: members that do not reach it suspect it
)

// isNew reports whether a TagIn says that its member has not found its cluster yet.
func isNew(in string) bool { return in == lookingFor || in == entering }

// wireVersion is this one's TagVersion.
const wireVersion = "2"

// maxPredecessors bounds TagWas: the earlier ones that no member saw start have long been decided about.
const maxPredecessors = 3

// predecessors reads a TagWas of another member.
func predecessors(tag string) []string {
	uids := strings.Split(tag, ",")
	return uids[:min(len(uids), maxPredecessors)]
}

// untaggedPrefix marks the ids of members that run no resolver.
const untaggedPrefix = "?"

func newUID() string {
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
}

func incarnation(name, uid string) sbr.ID { return sbr.ID(name + "#" + uid) }

// newIncarnation is a member that begins now.
func newIncarnation(name string) sbr.Member {
	return sbr.Member{ID: incarnation(name, newUID()), Name: name, Born: time.Now().UnixMilli()}
}

// uidOf returns what distinguishes an incarnation from others of the same name.
func uidOf(id sbr.ID) string { return string(id[strings.LastIndexByte(string(id), '#')+1:]) }

// idOf returns the incarnation of a Serf member.
func idOf(m *serf.Member) sbr.ID {
	if uid := m.Tags[TagUID]; uid != "" {
		return incarnation(m.Name, uid)
	}
	return sbr.ID(untaggedPrefix + m.Name)
}

// hasResigned reports whether the resolver of a node has been stopped. One whose agent has merely forgotten
// its tags has not.
func hasResigned(m *serf.Member) bool {
	uid, tagged := m.Tags[TagUID]
	return tagged && uid == ""
}

// isNodeOf reports whether a Serf member is the node of an incarnation, with its tags or without.
func isNodeOf(m *serf.Member, id sbr.ID) bool {
	return idOf(m) == id || isUntagged(idOf(m)) && m.Name == NameOf(id)
}

func isUntagged(id sbr.ID) bool { return strings.HasPrefix(string(id), untaggedPrefix) }

// NameOf returns the node name in an incarnation.
func NameOf(id sbr.ID) string {
	if name, untagged := strings.CutPrefix(string(id), untaggedPrefix); untagged {
		return name
	}
	if i := strings.LastIndexByte(string(id), '#'); i >= 0 {
		return string(id[:i])
	}
	return string(id)
}

func memberOf(m *serf.Member, status sbr.Status) sbr.Member {
	return sbr.Member{
		ID:     idOf(m),
		Name:   m.Name,
		Addr:   addrOf(m),
		Roles:  roles(m.Tags[TagRole]),
		Born:   parse36(m.Tags[TagBorn]),
		Seen:   uint64(parse36(m.Tags[TagSeen])),
		Status: status,
	}
}

func addrOf(m *serf.Member) string {
	return net.JoinHostPort(m.Addr.String(), strconv.Itoa(int(m.Port)))
}

func roles(tag string) []string {
	if tag == "" {
		return nil
	}
	return strings.Split(tag, ",")
}

// parse36 reads a number that another member wrote; whatever is no number counts as zero: youngest, and older
// than any verdict.
func parse36(s string) int64 {
	n, err := strconv.ParseInt(s, 36, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

func format36(n int64) string { return strconv.FormatInt(n, 36) }

// keepTags puts this member's tags back when the application has replaced them: without them it is a stranger
// to the others. While they cannot be put back it takes no new work. Loop only.
func (e *engine) keepTags(list []serf.Member) {
	self := named(list, e.self.Name)
	if self == nil {
		return
	}
	tags := withTags(self.Tags, e.tags)
	if maps.Equal(tags, self.Tags) {
		e.free(byTags, "the tags of this member are there again")
		return
	}
	self.Tags = tags // this member knows better what it is
	if self.Status != serf.StatusAlive || e.leaving {
		return
	}
	if n := tagBytes(tags); n > memberlist.MetaMaxSize {
		e.withoutTags(fmt.Sprintf("the tags of this node take %d bytes with those of the resolver, and Serf allows %d: "+
			"nobody can tell what this member is until the application takes some out", n, memberlist.MetaMaxSize))
		return
	}
	if e.offering.writing || time.Now().Before(e.tagsListed) {
		return
	}
	if e.offering.failed {
		e.withoutTags("the tags of this node cannot be set: nobody can tell what this member is")
	} else {
		e.log.Error("sbr: the node has lost the tags of this member, putting them back: an agent that restarts forgets them, " +
			"and an application that calls SetTags has to begin with those of LocalMember")
	}
	e.setTags()
}

// bareSays is how often a member without its tags says that it is still there: several times before the
// others take it for ended (bareFor).
const bareSays = bareFor / 4

// withoutTags suspends a member whose tags cannot be kept. The others go on counting it as the member that it
// was, as long as it reports to them.
func (e *engine) withoutTags(reason string) {
	e.hold(byTags, reason)
	if now := time.Now(); now.Sub(e.saidBare) >= bareSays {
		e.saidBare = now
		e.send(wire.Message{Kind: wire.KindReport, From: e.self.ID}, 1)
	}
}

func withTags(tags, ours map[string]string) map[string]string {
	all := make(map[string]string, len(tags)+len(ours))
	maps.Copy(all, tags)
	delete(all, TagServes) // the one of ours that may go
	maps.Copy(all, ours)
	return all
}

// tagsEvery bounds how often this member's tags are put back: it takes a moment until Serf lists what was
// set.
const tagsEvery = 2 * time.Second

// tagBytes is how many bytes Serf's encoding of tags takes, with a byte in front.
func tagBytes(tags map[string]string) int {
	var encoded []byte
	_ = codec.NewEncoderBytes(&encoded, &codec.MsgpackHandle{}).Encode(tags) // texts can always be encoded
	return 1 + len(encoded)
}

// withReserve returns tags with the longest values of those that may have to be set later.
func withReserve(tags map[string]string) map[string]string {
	tags = maps.Clone(tags)
	// the largest token; any hash
	for key, longest := range map[string]string{TagIn: "1y2p0ij32e8e7", TagStore: "12345678"} {
		if now, there := tags[key]; !there || isNew(now) {
			tags[key] = longest
		}
	}
	return tags
}

// offering is what this member offers. Loop only.
type offering struct {
	topics  map[string]struct{}
	waiting []chan<- error // for the tags that are to be set
	// writing: the tags are being set; again: once more after that; failed: they could not be set.
	writing, again, failed bool
}

// Offer implements driver.
func (e *engine) Offer(ctx context.Context, topic string, on bool) error {
	if err := wire.CheckTopic(topic); err != nil {
		return fmt.Errorf("downing: %w", err)
	}
	if !e.talk.takesPart() {
		return fmt.Errorf("%w: this member is not started, down, or stopped", ErrNotMember)
	}
	set, err := ask(ctx, e, func(done chan<- error) { e.offer(topic, on, done) })
	switch {
	case err == nil:
		return set
	case errors.Is(err, errResolverEnded):
		return fmt.Errorf("%w: this member is down, has left, or was stopped", ErrNotMember)
	default:
		return fmt.Errorf("downing: the topic %s is not told to the others yet: %w", topic, err)
	}
}

// offer changes what is offered. done has room for the one answer.
func (e *engine) offer(topic string, on bool, done chan<- error) {
	o := &e.offering
	if e.leaving {
		done <- fmt.Errorf("%w: this member leaves", ErrNotMember)
		return
	}
	topics := maps.Clone(o.topics)
	if on {
		if topics == nil {
			topics = make(map[string]struct{})
		}
		topics[topic] = struct{}{}
	} else {
		delete(topics, topic)
	}
	tags := withServes(e.tags, topics)
	list, _, _ := e.node.members()
	all := tags
	if m := named(list, e.self.Name); m != nil {
		all = withTags(m.Tags, tags)
	}
	if n := tagBytes(withReserve(all)); on && n > memberlist.MetaMaxSize {
		done <- fmt.Errorf("%w: with %s they take %d bytes, and Serf allows %d", ErrTagsFull, topic, n,
			memberlist.MetaMaxSize)
		return
	}
	o.topics, e.tags = topics, tags
	if on {
		o.waiting = append(o.waiting, done)
	} else {
		done <- nil
	}
	e.setTags()
}

// withServes returns this member's tags with the topics that it offers.
func withServes(tags map[string]string, topics map[string]struct{}) map[string]string {
	tags = maps.Clone(tags)
	if len(topics) == 0 {
		delete(tags, TagServes)
	} else {
		tags[TagServes] = strings.Join(slices.Sorted(maps.Keys(topics)), ",")
	}
	return tags
}

// setTags sets the tags of this member's node beside the loop, one write at a time: what comes up meanwhile
// is in the next. Loop only.
func (e *engine) setTags() {
	o := &e.offering
	o.again = o.writing
	if o.writing || e.leaving {
		return
	}
	waiting := o.waiting
	o.waiting = nil
	o.writing = true
	tags := maps.Clone(e.tags) // it may change meanwhile
	e.spawn(&e.workers, func() {
		err := e.node.tag(tags)
		if err != nil {
			e.log.Error("sbr: the tags of this member could not be set", "error", err)
		}
		e.inbox.Post(func() { e.tagsSet(waiting, err) })
	})
}

// tagsSet follows a write of the tags.
func (e *engine) tagsSet(waiting []chan<- error, err error) {
	o := &e.offering
	o.writing, o.failed = false, err != nil
	for _, done := range waiting {
		done <- err
	}
	e.tagsListed = time.Now().Add(tagsEvery)
	if o.again {
		e.setTags()
	}
}

// withdraw takes back what this member offers once its loop has ended: it answers no questions any more.
// Beside an agent all of its tags are taken back.
func (e *engine) withdraw() {
	n, ok := e.node.(*embedded)
	if !ok || len(e.offering.topics) == 0 || e.leaving || e.life.isOver() || isClosed(n.done()) {
		return
	}
	if err := n.tag(withServes(e.tags, nil)); err != nil {
		e.log.Debug("sbr: the tag of what this member offers could not be taken back", "error", err)
	}
}
