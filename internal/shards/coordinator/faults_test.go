package coordinator_test

import (
	"time"

	"github.com/serf-sbr/serf-sbr/internal/slot"
)

// lost has the others find out that a member is silent, and remove it unless it comes back.
func (n *node) lost() {
	w := n.w
	w.after(detection, func() {
		if !n.silent() {
			return
		}
		for _, o := range w.nodes {
			if o != n && !o.gone {
				o.seen[n.id] = true
				if n.cut {
					n.seen[o.id] = true
				}
			}
		}
		w.look()
	})
	w.after(stableAfter, func() {
		if !n.silent() || n.verdict {
			return
		}
		w.trace("%s is downed", n.name)
		n.verdict = true
		if w.chief == n {
			w.after(margin+10*time.Millisecond, func() { w.appoint(nil) })
		}
		w.look()
		w.after(2*time.Second, func() {
			n.gone = n.crashed
			w.look()
		})
	})
}

func (n *node) silent() bool { return n.crashed || n.cut || n.paused }

func (n *node) crash() {
	n.w.trace("%s crashes", n.name)
	n.crashed, n.coord = true, nil
	n.runs = map[int]*run{}
	for _, l := range n.w.leases { // its leases expire before the margin is over
		if l.holder == n.id {
			n.w.after(stableAfter, func() {
				if l.holder == n.id {
					l.holder = ""
				}
			})
		}
	}
	n.lost()
}

// isolate cuts a member off. It is told that it is down only once it is connected again.
func (n *node) isolate() {
	n.w.trace("%s is cut off", n.name)
	n.cut = true
	n.leasesRunOut()
	n.lost()
}

// leasesRunOut has a member that cannot renew find out, before others can have its leases.
func (n *node) leasesRunOut() {
	w := n.w
	n.renewed = w.now
	w.after(stableAfter/2, func() {
		if !n.cut && !n.paused {
			return
		}
		for s, l := range w.leases {
			if l.holder == n.id {
				n.toHostLater(slot.LeaseLost{Shard: s, Attempt: l.attempt, Why: "not renewed"})
				w.after(stableAfter/2, func() {
					if l.holder == n.id && (n.cut || n.paused) {
						l.holder = ""
					}
				})
			}
		}
	})
}

func (n *node) toHostLater(e slot.Event) {
	if n.crashed {
		return
	}
	if n.paused {
		n.backlog = append([]func(){func() { n.toHost(e) }}, n.backlog...)
		return
	}
	n.toHost(e)
}

func (n *node) connect() {
	n.w.trace("%s is connected again", n.name)
	n.cut = false
	n.back()
}

// pause stops the process of a member; what is sent to it waits.
func (n *node) pause() {
	n.w.trace("%s is paused", n.name)
	n.paused, n.stood = true, true
	n.leasesRunOut()
	n.lost()
}

func (n *node) resume() {
	n.w.trace("%s goes on", n.name)
	n.paused = false
	if n.coord != nil && n.w.now >= n.sureAt+trust {
		n.coord = nil
	}
	n.behind = n.w.now >= n.renewed+stableAfter/2
	n.tick() // the clock comes first
	backlog := n.backlog
	n.backlog = nil
	for _, do := range backlog {
		do()
	}
	n.behind = false
	n.back()
}

// back tells a member that is reachable again what has become of it.
func (n *node) back() {
	w := n.w
	if n.verdict {
		w.after(detection, func() {
			if !n.crashed {
				n.downed, n.coord = true, nil
				n.toHost(slot.Downed{Why: "a verdict"})
			}
		})
		return
	}
	w.after(detection, func() {
		if n.silent() {
			return
		}
		for _, o := range w.nodes {
			delete(o.seen, n.id)
			if !o.silent() {
				delete(n.seen, o.id)
			}
		}
		w.look()
	})
}

// leave has a member hand over what it runs, and go.
func (n *node) leave() {
	n.w.trace("%s leaves", n.name)
	n.leaving = true
	n.toHost(slot.Resign{Patience: 10 * time.Second})
	n.w.look()
	n.departs()
}

func (n *node) departs() {
	n.w.after(100*time.Millisecond, func() {
		if n.crashed || n.gone {
			return
		}
		if !n.host.Finished() {
			n.departs()
			return
		}
		n.w.trace("%s has left", n.name)
		n.gone, n.crashed, n.closed = true, true, true
		n.w.look()
	})
}

// lose has the store lose a lease, or give it to somebody who is no member, for a while.
func (l *leaseState) lose(w *world, n *node) {
	for s, have := range w.leases {
		if have != l || l.holder != n.id {
			continue
		}
		n.toHost(slot.LeaseLost{Shard: s, Attempt: l.attempt, Why: "the store has lost it"})
		l.foreign = true
		w.after(2*time.Second, func() { l.foreign = false })
	}
}
