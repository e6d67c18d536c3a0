package downing

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/downing/gossip"
)

// keepTags puts this member's tags back when the application has replaced them: without them it is a stranger to the
// others. While they cannot be put back it takes no new work. Loop only.
func (e *engine) keepTags(list []serf.Member) {
	i := slices.IndexFunc(list, func(m serf.Member) bool { return m.Name == e.self.Name })
	if i < 0 {
		return
	}
	tags := withTags(list[i].Tags, e.tags)
	if maps.Equal(tags, list[i].Tags) {
		e.free(byTags, "the tags of this member are there again")
		return
	}
	list[i].Tags = tags // this member knows better what it is
	if list[i].Status != serf.StatusAlive || e.leaving {
		return
	}
	if n := tagBytes(tags); n > memberlist.MetaMaxSize {
		e.withoutTags(fmt.Sprintf("the tags of this node take %d bytes with those of the resolver, and Serf allows %d: "+
			"nobody can tell what this member is until the application takes some out", n, memberlist.MetaMaxSize))
		return
	}
	if e.tagging || e.offering.writing {
		return
	}
	if e.offering.failed {
		e.withoutTags("the tags of this node cannot be set: nobody can tell what this member is")
	} else {
		e.log.Error("sbr: the tags of this member were replaced without those of the resolver, putting them back: " +
			"begin with the tags of LocalMember when you call SetTags")
	}
	e.setTags()
}

// bareSays is how often a member without its tags says that it is still there: several times before the others take it
// for one that has ended (bareFor).
const bareSays = bareFor / 4

// withoutTags suspends a member whose tags cannot be kept. The others go on counting it as the member that it was, as long as
// they hear from it.
func (e *engine) withoutTags(reason string) {
	e.hold(byTags, reason)
	if now := time.Now(); now.Sub(e.saidBare) >= bareSays {
		e.saidBare = now
		e.send(gossip.Message{Kind: gossip.KindReport, From: e.self.ID})
	}
}

// tagged says that the tags were set just now: it takes a moment until Serf lists them.
func (e *engine) tagged() {
	e.tagging = true
	e.spawn(&e.workers, func() {
		e.rest(tagsEvery)
		e.inbox.Post(func() { e.tagging = false })
	})
}

func withTags(tags, ours map[string]string) map[string]string {
	all := make(map[string]string, len(tags)+len(ours))
	maps.Copy(all, tags)
	delete(all, TagServes) // the one of ours that may go
	maps.Copy(all, ours)
	return all
}

// tagsEvery bounds how often this member's tags are put back.
const tagsEvery = 2 * time.Second

// tagBytes is how many bytes Serf's encoding of tags takes (msgpack, with a byte in front).
func tagBytes(tags map[string]string) int {
	n := 1 + mapHead(len(tags))
	for key, value := range tags {
		n += textSize(key) + textSize(value)
	}
	return n
}

func mapHead(entries int) int {
	if entries < 16 {
		return 1
	}
	return 3
}

func textSize(s string) int {
	if len(s) < 32 {
		return 1 + len(s)
	}
	return 3 + len(s)
}

// reserve is the room that is kept free for the tags that may have to be set later.
func reserve(tags map[string]string) (n int) {
	for key, longest := range map[string]string{TagIn: "1y2p0ij32e8e7", TagStore: "12345678"} { // the largest token; any hash
		if _, there := tags[key]; !there {
			n += textSize(key) + textSize(longest)
		}
	}
	return n
}
