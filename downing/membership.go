package downing

import (
	"time"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// zombieAfter is how long a member may be leaving before that is taken for what Serf's stale leave intents leave behind: a
// graceful leave takes at most 11 s.
const zombieAfter = 30 * time.Second

// bareFor is how long a member that is alive may lack its tags and still be the member that it was: its agent has restarted, and its
// resolver sets them again within seconds. Until then the others have long decided about a member without a resolver.
const bareFor = time.Minute

// membership turns what Serf says of its members into the resolver's events. Serf's list is the truth; its events are dropped,
// coalesced, reordered and repeated, so they are only a reason to look.
type membership struct {
	self  sbr.ID
	known map[sbr.ID]*known
	// serves counts how often what anybody serves has changed.
	serves uint64
}

type known struct {
	serf         serf.MemberStatus
	member       sbr.Member
	failed       bool
	leavingSince time.Duration
	zombie       bool
	mark         bool
	config       string
	probe        string
	serves       string
	tags         map[string]string // as it had them last
	bareSince    time.Duration     // negative: it has them
}

func newMembership(self sbr.ID) *membership {
	return &membership{self: self, known: make(map[sbr.ID]*known)}
}

// change is one difference between two looks.
type change struct {
	event  sbr.Event // MemberSeen or MemberGone
	id     sbr.ID
	failed *bool // Serf's word changed
}

// look compares Serf's list with the last look.
func (ms *membership) look(now time.Duration, list []serf.Member) []change {
	var changes []change
	for i := range list {
		m := &list[i]
		if m.Status == serf.StatusNone {
			continue
		}
		m = ms.dressed(now, m)
		id := idOf(m)
		k := ms.known[id]
		if m.Status == serf.StatusLeft && (k == nil || !k.silentlyLeft()) {
			continue // gone: not marked below
		}
		if k == nil {
			k = &known{leavingSince: -1, bareSince: -1}
			ms.known[id] = k
		}
		if k.serves != m.Tags[TagServes] {
			ms.serves++
		}
		k.mark, k.tags = true, m.Tags
		changes = append(changes, k.update(now, id, m)...)
	}
	for id, k := range ms.known {
		if !k.mark {
			delete(ms.known, id)
			changes = append(changes, change{event: sbr.MemberGone{ID: id}, id: id})
		}
		k.mark = false
	}
	return changes
}

// dressed returns a member that lacks its tags as what it was when it had them. One that resigned says so, and one that fails meanwhile
// does not vanish: a side would look whole by it.
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

// removing says that members are to be removed. One that Serf calls left already needs no removal: it is gone from now on.
func (ms *membership) removing(ids []sbr.ID) {
	for _, id := range ids {
		if k := ms.known[id]; k != nil && k.serf == serf.StatusLeft {
			k.zombie = false
		}
	}
}

// silentlyLeft reports whether "left" must be read as "failed": the member was only said to be leaving by a stale intent, so
// its end is a failure that Serf calls a leave.
func (k *known) silentlyLeft() bool { return k.zombie }

func (k *known) update(now time.Duration, id sbr.ID, m *serf.Member) (changes []change) {
	status := sbr.Up
	failed := m.Status == serf.StatusFailed || m.Status == serf.StatusLeft
	switch m.Status {
	case serf.StatusLeaving:
		status = k.leaving(now)
	case serf.StatusAlive:
		k.leavingSince, k.zombie = -1, false
	}
	if isUntagged(id) {
		status = sbr.Joining
	}
	member := memberOf(m, status)
	k.config, k.probe, k.serves = m.Tags[TagConfig], m.Tags[TagProbe], m.Tags[TagServes]
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

func (k *known) leaving(now time.Duration) sbr.Status {
	if k.leavingSince < 0 {
		k.leavingSince = now
	}
	if now-k.leavingSince >= zombieAfter {
		k.zombie = true
	}
	if k.zombie {
		return sbr.Up
	}
	return sbr.Leaving
}

func sameMember(a, b *sbr.Member) bool {
	if a.ID != b.ID || a.Addr != b.Addr || a.Status != b.Status || a.Born != b.Born || a.Seen != b.Seen || len(a.Roles) != len(b.Roles) {
		return false
	}
	for i := range a.Roles {
		if a.Roles[i] != b.Roles[i] {
			return false
		}
	}
	return true
}
