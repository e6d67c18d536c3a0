package downing

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// keepOut is the merge delegate that refuses downed incarnations. Serf calls it under memberlist's node lock,
// so it only looks at an immutable list.
type keepOut struct {
	next    serf.MergeDelegate // the application's own, may be nil
	list    atomic.Pointer[denyList]
	refused func(*serf.Member) // must not block
	created atomic.Bool        // Serf has asked about this node itself, which it does while it is created

	mu    sync.Mutex
	knock map[sbr.ID]time.Time // when each refused incarnation knocked first
}

func newKeepOut(next serf.MergeDelegate, self sbr.ID, refused func(*serf.Member)) *keepOut {
	k := &keepOut{next: next, refused: refused}
	k.list.Store(&denyList{self: self})
	return k
}

// denyList has the members that must stay out: those that the newest verdict or an order downs.
type denyList struct {
	verdict sbr.Verdict
	orders  map[sbr.ID]struct{}
	self    sbr.ID
}

func (d *denyList) denies(m *serf.Member) bool {
	id := idOf(m)
	return id != d.self && !isUntagged(id) && d.isOut(id, uint64(parse36(m.Tags[TagSeen])))
}

func (d *denyList) isOut(id sbr.ID, seen uint64) bool {
	_, ordered := d.orders[id]
	return ordered || d.verdict.Standing(id, seen) == sbr.Out
}

// NotifyMerge refuses a single downed incarnation. A whole list is let through: one refused member would
// reject the join, and Serf asks again for each member of it.
func (k *keepOut) NotifyMerge(members []*serf.Member) error {
	d := k.list.Load()
	if len(members) == 1 && idOf(members[0]) == d.self {
		k.created.Store(true)
	}
	if len(members) == 1 && d.denies(members[0]) && k.refuse(members[0]) {
		return fmt.Errorf("sbr: %s was downed as incarnation %s and stays out", members[0].Name,
			members[0].Tags[TagUID])
	}
	if k.next != nil {
		return k.next.NotifyMerge(members)
	}
	return nil
}

// refuse reports whether a downed incarnation stays outside. Each is reported once for each time that it is
// let in.
func (k *keepOut) refuse(m *serf.Member) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	id := idOf(m)
	first, known := k.knock[id]
	switch {
	case known && time.Since(first) >= wire.RefuseFor:
		delete(k.knock, id)
		return false
	case known:
		return true
	case k.knock == nil:
		k.knock = make(map[sbr.ID]time.Time)
	}
	k.knock[id] = time.Now()
	k.refused(m)
	return true
}
