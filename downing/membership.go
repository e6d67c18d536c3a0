package downing

import (
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// goodbyeWithin is how long the goodbye of a member that Serf calls left may take to arrive. Until then the
// member is leaving, and not a suspect.
const goodbyeWithin = 3 * time.Second

// bareFor is how long a member that is alive may lack its tags, and say nothing, and still be the member that
// it was: its agent has restarted, and its resolver sets them again within seconds. Until then the others
// have long decided about a member without a resolver.
const bareFor = time.Minute

// membership turns what Serf says of its members into the resolver's events. Serf's list is the truth about
// which members can be reached; its events are dropped, coalesced, reordered and repeated, so they are only a
// reason to look. The list is no proof that a member has ended: any member can make Serf call another one
// leaving or left (force-leave), and Serf forgets failed members by itself. A member has ended when it said
// goodbye itself, when it took its tags back, or when its successor names it.
type membership struct {
	self  sbr.ID
	known map[sbr.ID]*known
	// cutOff reports whether this member cannot reach another one, whatever Serf says.
	cutOff func(sbr.ID) bool
	// unlisted are members that Serf lists no longer and that have not ended, by what tells incarnations
	// apart.
	unlisted map[string]unlisted
	// ended are the incarnations that members name as their predecessors, and those that have left after
	// their goodbye.
	ended map[string]struct{}
	// copied says which members name a predecessor that runs, as of the last look.
	copied []string
}

// unlisted is one of them, with its last tags as far as they are known, and since when it was listed.
type unlisted struct {
	id    sbr.ID
	tags  map[string]string
	since time.Duration
}

type known struct {
	since     time.Duration // when it was first listed
	serf      serf.MemberStatus
	member    sbr.Member
	failed    bool
	goodbye   bool          // it said itself that it leaves
	leftSince time.Duration // when Serf called it left and it had not said goodbye; negative: Serf does not
	mark      bool
	tags      map[string]string // as it had them last
	bareSince time.Duration     // since when it lacks them and was silent; negative: it has them
}

func newMembership(self sbr.ID, cutOff func(sbr.ID) bool) *membership {
	return &membership{
		self: self, cutOff: cutOff, known: make(map[sbr.ID]*known), unlisted: make(map[string]unlisted),
		ended: make(map[string]struct{}),
	}
}

// change is one difference between two looks.
type change struct {
	event  sbr.Event // MemberSeen or MemberGone
	id     sbr.ID
	failed *bool // Serf's word changed
}

// look compares Serf's list with the last look.
func (ms *membership) look(now time.Duration, list []serf.Member) (changes []change) {
	changes = ms.successors(list)
	here := make(map[string]*serf.Member, len(list))
	for i := range list {
		m := &list[i]
		if m.Status == serf.StatusNone {
			continue
		}
		here[m.Name] = m
		m = ms.dressed(now, m)
		id := idOf(m)
		k := ms.known[id]
		switch {
		case ms.hasEnded(id), m.Status == serf.StatusLeft && (k == nil || k.hasLeft(now, ms.cutOff(id))):
			continue // not marked below
		case k != nil && k.goodbye && (m.Status == serf.StatusFailed || ms.cutOff(id)):
			continue // it left as announced, and Serf's own leave message got lost
		}
		if k == nil {
			k = &known{since: now, leftSince: -1, bareSince: -1}
			ms.known[id] = k
			delete(ms.unlisted, uidOf(id))
		}
		k.mark, k.tags = true, m.Tags
		changes = append(changes, k.update(id, m)...)
	}
	for id, k := range ms.known {
		if !k.mark {
			delete(ms.known, id)
			gone := sbr.MemberGone{ID: id, Ended: ms.hasEnded(id) || k.hasEnded(id, here[k.member.Name],
				ms.cutOff(id))}
			switch {
			case !gone.Ended:
				ms.unlisted[uidOf(id)] = unlisted{id, k.tags, k.since}
			case k.goodbye:
				ms.ended[uidOf(id)] = struct{}{}
			}
			changes = append(changes, change{event: gone, id: id})
		}
		k.mark = false
	}
	return changes
}

// successors learns which incarnations the members name as their predecessors: they run on the same host,
// with the same state folder, which only one process can use at a time. A predecessor that Serf reaches
// elsewhere has not ended: the folder was copied, with a machine's disk, say.
func (ms *membership) successors(list []serf.Member) (changes []change) {
	ms.copied = nil
	alive := make(map[string]*serf.Member)
	for i := range list {
		if m := &list[i]; m.Status == serf.StatusAlive && !isUntagged(idOf(m)) {
			alive[uidOf(idOf(m))] = m
		}
	}
	for i := range list {
		m := &list[i]
		if m.Status != serf.StatusAlive || m.Tags[TagWas] == "" {
			continue
		}
		for _, uid := range predecessors(m.Tags[TagWas]) {
			if old := alive[uid]; old != nil && old.Name != m.Name && addrOf(old) != addrOf(m) {
				ms.copied = append(ms.copied, fmt.Sprintf("%s of %s", m.Name, old.Name))
				continue
			}
			if uid == uidOf(idOf(m)) || uid == uidOf(ms.self) {
				continue
			}
			ms.ended[uid] = struct{}{}
			if u, ok := ms.unlisted[uid]; ok {
				delete(ms.unlisted, uid)
				changes = append(changes, change{event: sbr.MemberGone{ID: u.id, Ended: true}, id: u.id})
			}
		}
	}
	return changes
}

// hasEnded reports whether it is known for certain that an incarnation has ended.
func (ms *membership) hasEnded(id sbr.ID) bool {
	_, ended := ms.ended[uidOf(id)]
	return ended && !isUntagged(id)
}

// running leaves out the incarnations that have certainly ended.
func (ms *membership) running(ids []sbr.ID) []sbr.ID {
	return slices.DeleteFunc(slices.Clone(ids), ms.hasEnded)
}

// saidGoodbye notes that a member leaves of its own will. A member that Serf lists no longer is gone with it.
func (ms *membership) saidGoodbye(id sbr.ID) (gone bool) {
	if k := ms.known[id]; k != nil {
		k.goodbye = true
		return false
	}
	_, gone = ms.unlisted[uidOf(id)]
	delete(ms.unlisted, uidOf(id))
	return gone
}

// miss notes members that this member knows of but does not list.
func (ms *membership) miss(ids ...sbr.ID) {
	for _, id := range ids {
		if _, is := ms.unlisted[uidOf(id)]; !is && ms.known[id] == nil && !ms.hasEnded(id) {
			ms.unlisted[uidOf(id)] = unlisted{id: id}
		}
	}
}

// tags are the last ones of a member, nil if it never listed any here, and when it was first listed.
func (ms *membership) tags(id sbr.ID) (tags map[string]string, since time.Duration) {
	if k := ms.known[id]; k != nil {
		return k.tags, k.since
	}
	u := ms.unlisted[uidOf(id)]
	return u.tags, u.since
}

// prune forgets the members that the resolver has forgotten.
func (ms *membership) prune(r *sbr.Resolver) {
	for uid, u := range ms.unlisted {
		if _, known := r.Member(u.id); !known {
			delete(ms.unlisted, uid)
		}
	}
}

// dressed returns a member that lacks its tags with its last known tags. A member that resigned says so. A
// member that fails meanwhile does not vanish: without it a side would look whole.
func (ms *membership) dressed(now time.Duration, m *serf.Member) *serf.Member {
	if !isUntagged(idOf(m)) {
		if k := ms.known[idOf(m)]; k != nil {
			k.bareSince = -1
		}
		return m
	}
	if ms.known[idOf(m)] != nil || hasResigned(m) {
		return m
	}
	for id, k := range ms.known {
		if k.member.Name != m.Name || isUntagged(id) || k.member.Addr != addrOf(m) {
			continue
		}
		if m.Status == serf.StatusFailed {
			k.bareSince = -1
		} else if k.bareSince < 0 {
			k.bareSince = now
		}
		if k.bareSince >= 0 && now-k.bareSince >= bareFor {
			return m
		}
		as := *m
		as.Tags = k.tags
		return &as
	}
	return m
}

// heard notes a message of a member: it is still the same incarnation, with its tags or without.
func (ms *membership) heard(id sbr.ID) {
	if k := ms.known[id]; k != nil {
		k.bareSince = -1
	}
}

// hasLeft reports whether a member that Serf calls left is listed no longer. A member that was not suspected
// has a moment for its goodbye.
func (k *known) hasLeft(now time.Duration, cutOff bool) bool {
	if k.goodbye || k.failed || cutOff || !k.saysGoodbye() {
		return true
	}
	if k.leftSince < 0 {
		k.leftSince = now
	}
	return now-k.leftSince >= goodbyeWithin
}

// hasEnded reports whether it is certain that a member which is listed no longer takes no part any more. now
// is the member that Serf lists under its name, nil if there is none.
func (k *known) hasEnded(id sbr.ID, now *serf.Member, cutOff bool) bool {
	switch {
	case k.goodbye || isUntagged(id) || k.tags[TagIn] == lookingFor: // they decide nothing
		return true
	case now == nil || k.failed || cutOff:
		return false
	case idOf(now) == id:
		return !k.saysGoodbye() // an older version: Serf's word has to do
	default:
		// It took its tags back, or was started again in its place before anybody missed it: only one process
		// can have the address.
		return hasResigned(now) || !isUntagged(idOf(now)) && now.Status == serf.StatusAlive &&
			addrOf(now) == k.member.Addr
	}
}

// saysGoodbye reports whether the member's version says goodbye.
func (k *known) saysGoodbye() bool { return k.tags[TagVersion] != "" }

func (k *known) update(id sbr.ID, m *serf.Member) (changes []change) {
	status := sbr.Up
	failed := m.Status == serf.StatusFailed
	switch {
	case isUntagged(id):
		status = sbr.Joining
	case k.goodbye || m.Status == serf.StatusLeft || m.Status == serf.StatusLeaving && !k.saysGoodbye():
		status = sbr.Leaving
	case m.Tags[TagIn] == lookingFor:
		status = sbr.Joining
	}
	if m.Status == serf.StatusAlive {
		k.leftSince = -1
	}
	member := memberOf(m, status)
	if k.serf == serf.StatusNone || !sameMember(&k.member, &member) {
		k.member = member
		changes = append(changes, change{event: sbr.MemberSeen{Member: member}, id: id})
	}
	if k.serf == serf.StatusNone && failed || k.failed != failed {
		k.failed = failed
		changes = append(changes, change{id: id, failed: &failed})
	}
	k.serf = m.Status
	return changes
}

func sameMember(a, b *sbr.Member) bool {
	return a.ID == b.ID && a.Addr == b.Addr && a.Status == b.Status && a.Born == b.Born && a.Seen == b.Seen &&
		slices.Equal(a.Roles, b.Roles)
}
