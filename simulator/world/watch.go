package world

import (
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// watch is what the checkers remember of one process, by its own clock. It is worked out from what the process was told alone, so that
// the resolver's own accounting is not checked against itself.
type watch struct {
	// viewed is when its view of who can be reached changed last, troubled when somebody became unreachable first
	// while nobody was; both only about members that may still have to be downed.
	viewed, troubled time.Duration
	// reset is the last moment from which stable-after may count: viewed, and whatever else begins the count anew.
	reset time.Duration
	// suspects are those that are unreachable and may still have to be downed.
	suspects int
	// decided says that it has ever explained a decision, proxy that the last one was made for another member of its side.
	decided, proxy bool
	// tryBy is the last moment for the first attempt that follows a decision; zero: none is due.
	tryBy time.Duration
	// harmed says that something happened to it, or to its way to the store, that excuses it from promise L1.
	harmed bool
}

// view takes in what an event changes in who can be reached. It runs before the resolver's step.
func (h *watch) view(p *process, e sbr.Event) {
	r, ok := e.(sbr.Reachability)
	if !ok {
		return
	}
	m, known := p.r.Member(r.ID)
	if !known || r.ID == p.id || m.Unreachable == r.Unreachable || m.Status > sbr.Up {
		return
	}
	now := p.clock()
	if h.suspects == 0 && r.Unreachable {
		h.troubled = now
	}
	h.viewed, h.reset, h.proxy, h.tryBy = now, now, false, 0
}
