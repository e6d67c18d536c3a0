package downing

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// keepOut is the merge delegate that refuses downed incarnations. Serf calls it under memberlist's node lock, so it only looks
// at an immutable list.
type keepOut struct {
	next    serf.MergeDelegate // the application's own, may be nil
	list    atomic.Pointer[denyList]
	refused func(*serf.Member) // must not block
	created atomic.Bool        // Serf has asked about this node itself, which it does while it is created

	mu   sync.Mutex
	told map[sbr.ID]struct{}
}

// denyList is who must stay out: everybody the newest verdict leaves out, and everybody downed by an order.
type denyList struct {
	verdict sbr.Verdict
	orders  map[sbr.ID]struct{}
	self    sbr.ID
}

func (d *denyList) denies(m *serf.Member) bool {
	id := idOf(m)
	if id == d.self || isUntagged(id) {
		return false
	}
	if _, ordered := d.orders[id]; ordered {
		return true
	}
	return d.verdict.Standing(id, uint64(parse36(m.Tags[TagSeen]))) == sbr.Out
}

// NotifyMerge refuses a single downed incarnation. A whole list is let through: one refused member would reject the join,
// and Serf asks again for each member of it.
func (k *keepOut) NotifyMerge(members []*serf.Member) error {
	d := k.list.Load()
	if d != nil && len(members) == 1 && idOf(members[0]) == d.self {
		k.created.Store(true)
	}
	if d != nil && len(members) == 1 && d.denies(members[0]) {
		k.report(members[0])
		return fmt.Errorf("sbr: %s was downed as incarnation %s and stays out", members[0].Name, members[0].Tags[TagUID])
	}
	if k.next != nil {
		return k.next.NotifyMerge(members)
	}
	return nil
}

// report tells of each refused incarnation once.
func (k *keepOut) report(m *serf.Member) {
	k.mu.Lock()
	defer k.mu.Unlock()
	id := idOf(m)
	if _, known := k.told[id]; known {
		return
	}
	if k.told == nil {
		k.told = make(map[sbr.ID]struct{})
	}
	k.told[id] = struct{}{}
	k.refused(m)
}
