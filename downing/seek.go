package downing

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hashicorp/serf/serf"
)

// Serf joins once, and then tries to reach members that it calls failed. Members that were removed from its
// list, or that a restarted Serf does not know, are found by nobody: two parts of a cluster that started
// apart stay apart. So a member joins the addresses at which members are remembered that are missing. Those
// of members that were downed are tried seldom, by one or two of the whole cluster at a time: most of them
// come back by themselves, or never.

const (
	seekEvery = 10 * time.Second
	// seekMost is how many addresses are tried at a time.
	seekMost = 5
)

// seek joins some of the addresses where members are missing. Loop only.
func (e *engine) seek(list []serf.Member) {
	if e.cfg.Memory == nil || e.seeking || e.leaving || e.ended || e.clock() < e.nextSeek {
		return
	}
	first := e.nextSeek == 0
	e.nextSeek = e.clock() + seekEvery
	if first {
		e.nextSeek = e.clock() + sayWaitingAfter // the application joins first
		return
	}
	addrs := e.soughtAddresses(list)
	if len(addrs) == 0 {
		return
	}
	e.seeking = true
	e.spawn(&e.workers, func() {
		for _, addr := range addrs {
			if e.ctx.Err() != nil {
				break
			}
			if err := e.node.join("", addr); err != nil {
				e.log.Debug("sbr: nobody answers where a member was", "address", addr, "error", err)
				continue
			}
			e.log.Info("sbr: joined an address where a member was", "address", addr)
		}
		e.inbox.Post(func() { e.seeking = false })
	})
}

// soughtAddresses are where members are missing: some of those that are remembered, and one of those that
// were downed.
func (e *engine) soughtAddresses(list []serf.Member) (addrs []string) {
	listed, hosts := make(map[string]bool), make(map[string]bool)
	for i := range list {
		m := &list[i] // those that have failed Serf tries to reach by itself
		if m.Status == serf.StatusAlive || m.Status == serf.StatusFailed {
			listed[addrOf(m)] = true
			hosts[hostOf(idOf(m))] = true
		}
	}
	pick := func(places []place, most int) {
		var missing []string
		for _, p := range places {
			if p.Addr != "" && !listed[p.Addr] && !hosts[hostOf(p.ID)] {
				missing = append(missing, p.Addr)
			}
		}
		rand.Shuffle(len(missing), func(i, j int) { missing[i], missing[j] = missing[j], missing[i] })
		addrs = append(addrs, missing[:min(len(missing), most)]...)
	}
	last := e.cfg.Memory.load()
	pick(last.Members, seekMost)
	if !e.newcomer && rand.IntN(len(list)+1) < 2 { // not the first: it may have joined since, and know of none
		pick(last.Downed, 1)
	}
	slices.Sort(addrs)
	return slices.Compact(addrs)
}
