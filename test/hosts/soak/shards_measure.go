//go:build linux

package main

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/ledger"
)

// shardMoves tells the changes of a round apart.
func (g *game) shardMoves(changes []ledger.Change, bound time.Duration) []move {
	struck := g.plan.hurt()
	if g.plan.Single.Scene == cutScene {
		struck = without(hosts, g.result.Up)
	}
	return shardMovesOf(changes, g.plan, g.log, fate{struck, g.result.Downs}, bound)
}

// hurt are the hosts on which something happens to all that runs there.
func (p *plan) hurt() (all []string) {
	for _, k := range []kind{pause, crash, kill, departure, desertion} {
		all = append(all, p.hit(k)...)
	}
	return all
}

// fate is who was hit in a round.
type fate struct {
	struck []string          // hosts
	downed map[string]string // incarnations, with the reasons
}

// shardMovesOf tells changes apart by when they were, whether the old run had said that it stops, and whether its host or its incarnation was hit. Gaps are those between
// the runs.
func shardMovesOf(changes []ledger.Change, p *plan, log marks, hit fate, bound time.Duration) (all []move) {
	seen := make(map[string]bool)
	for _, c := range changes {
		m := move{From: hostOf(c.From), To: hostOf(c.To), Gap: (c.Began - c.Ended).Seconds()}
		switch {
		case c.At <= log.begin:
			continue
		case log.ready == 0 || c.At <= log.ready: // of the round before
			m.Cause = afterwards(c.Planned)
		case log.cut == 0 || c.At <= log.cut:
			m.Cause = byHandOver
		case log.healed != 0 && c.At > log.healed:
			_, downed := hit.downed[c.From]
			m.Cause = afterwards(c.Planned && c.Ended > log.healed && !downed)
		case p.Single.Scene == rollingScene:
			m.Cause = p.cause()
		case p.alone() && !slices.Contains(hit.struck, m.From):
			m.Cause = byOther
		default:
			m.Cause = p.cause()
			if p.alone() && p.Single.Scene != leaveScene && !seen[c.Resource] {
				m.Since, m.Bound = (c.Began - log.cut).Seconds(), bound.Seconds()
			}
			seen[c.Resource] = true
		}
		all = append(all, m)
	}
	return all
}

// afterwards is the cause of what moves when everything is well again.
func afterwards(handedOver bool) cause {
	if handedOver {
		return byBalance
	}
	return byHeal
}
