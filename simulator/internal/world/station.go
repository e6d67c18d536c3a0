package world

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/shards/coordinator"
	"github.com/serf-sbr/serf-sbr/internal/shards/host"
	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	core "github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// station is where shards of a type run on one process: the host's machine, that of the coordinator while it is this process's turn, and what drives them,
// which does what package sharding does.
type station struct {
	p     *process
	set   *shards
	talk  talk
	alarm alarm

	host   *host.Machine        // without the role it is offered nothing, and says that it runs nothing
	chief  *coordinator.Machine // nil: none runs here
	berths []berth              // by the shard
	table  *message.Owners

	stage   stationStage
	offered bool // the others know that the member would run shards

	view  core.View // the newest that the machines were given
	state sbr.State // of the resolver, when it was last told of a change
}

// stationStage is the place of a station in its life.
type stationStage uint8

const (
	stationOpen    stationStage = iota
	stationEnding               // nothing runs any more, and nobody answers; the offer is being withdrawn
	stationParting              // nobody listens any more; the coordinator's part is handed over
	stationClosed
)

// open makes the process host shards, offer to, and then take its place among those who may coordinate.
func (p *process) open(s *shards, before memory) {
	const thenWithin = 20 * time.Millisecond
	w := p.w
	if p.stage != stageRunning || p.resigned {
		return
	}
	t := newStation(p, s, before)
	p.stations[s.index] = t
	w.disturb()
	t.look()
	if !s.chief.runsOn(p.node) {
		return
	}
	w.spreadOffer(func() { t.offered = t.stage == stationOpen })
	w.after(w.between(0, thenWithin), p, func() {
		if t.stage == stationOpen && p.stage == stageRunning {
			p.seat(s.chief, before.chiefs)
		}
	})
	if s.ReopensAfter > 0 {
		w.after(w.between(s.ReopensAfter/2, s.ReopensAfter), p, t.shut)
	}
}

func newStation(p *process, s *shards, before memory) *station {
	rules := s.rules
	rules.Self, rules.Known, rules.Gone = p.id, before.known, before.hosts
	m, err := host.New(rules, p.clock())
	if err != nil {
		panic(err) // the options were validated
	}
	t := &station{p: p, set: s, host: m, table: message.NewOwners(s.Count, s.digest), berths: make([]berth, s.Count)}
	t.talk = newTalk(p, len(p.w.slots)+s.index, s.HandOverRetryInterval, t)
	t.alarm = alarm{p: p, of: t}
	for i := range t.berths {
		t.berths[i].open(p, s.slots[i], t)
	}
	return t
}

// shut closes the station in good order: what runs is handed over first.
func (t *station) shut() {
	if t.p.runs() {
		t.p.w.disturb()
		t.step(core.Resign{Patience: time.Duration(t.set.NumberOfRetries) * t.set.HandOverRetryInterval})
	}
}

// settled goes on once nothing runs here and nothing will: the offer is withdrawn, then nobody listens, then the coordinator's part is handed over.
func (t *station) settled() {
	const withdrawsWithin = 300 * time.Millisecond
	w := t.p.w
	t.stage, t.chief = stationEnding, nil
	w.after(w.between(0, withdrawsWithin), t.p, func() {
		t.offered = false
		w.offers()
		t.stage = stationParting
		seat := t.p.seats[t.set.chief.index]
		if seat == nil {
			t.over()
			return
		}
		if r := seat.run; r != nil {
			r.end(core.RunEnded{Run: r.number, Again: true, Rest: time.Second, Why: "nothing drives it any more"})
		}
		seat.resign()
	})
}

// over is called when nothing is left of the coordinator's part either. The manager may be opened again.
func (t *station) over() {
	const opensWithin = 5 * time.Second
	if t.stage != stationParting {
		return // the coordinator has ended by itself
	}
	w, p := t.p.w, t.p
	t.stage = stationClosed
	for i := range t.berths {
		t.berths[i].closeLease()
	}
	seat := p.seats[t.set.chief.index]
	if seat != nil {
		seat.closed = true
		seat.closeLease()
		p.seats[t.set.chief.index] = nil
	}
	if p.resigned {
		p.mayGo()
		return
	}
	w.after(w.between(0, opensWithin), p, func() { p.open(t.set, t.remembers(seat)) })
}

// memory is what a manager has of the one before it in the same process.
type memory struct {
	known         host.Known
	hosts, chiefs map[sbr.ID]time.Duration // whose margins are not over, as hosts and as coordinators
}

// remembers is what the next manager has. The provider remembers who is gone, also meanwhile; here the machines do, which look once more.
func (t *station) remembers(seat *seat) memory {
	now := t.p.clock()
	t.host.Step(now, core.Viewed{View: t.viewNow()})
	m := memory{known: t.host.Known(), hosts: t.host.Gone()}
	if seat != nil {
		seat.m.Step(now, core.Viewed{View: seat.viewNow()})
		m.chiefs = seat.m.Gone()
	}
	return m
}

// station is the process's place in the shards of a type.
func (p *process) station(s *shards) *station { return p.stations[s.index] }

// eachStation is about the stations that are not closed.
func (p *process) eachStation(f func(*station)) {
	for _, t := range p.stations {
		if t != nil && t.stage != stationClosed {
			f(t)
		}
	}
}

// hosts reports whether the others know that the process would run shards of a type.
func (p *process) hosts(s *shards) bool {
	return p.stations != nil && p.stations[s.index] != nil && p.stations[s.index].offered
}

// viewNow is what the process knows at this moment.
func (t *station) viewNow() core.View {
	p := t.p
	v := core.View{Armed: p.r.State() != sbr.StateArming && p.r.State() != sbr.StateDown, Sure: p.sureAt()}
	p.eachMember(func(m *sbr.Member, leaving bool) {
		v.Peers = append(v.Peers, core.Peer{
			ID: m.ID, Name: m.Name, Candidate: p.w.byID[m.ID].hosts(t.set), Leaving: leaving, Down: m.Status == sbr.Down, Unreachable: m.Unreachable,
		})
	})
	return v
}

// notice looks around if anything has changed.
func (t *station) notice() {
	if v, state := t.viewNow(), t.p.r.State(); state != t.state || !slices.Equal(v.Peers, t.view.Peers) {
		t.state = state
		t.look()
	}
}

// downed is the moment at which the process was downed, and promise Y5.
func (t *station) downed(why string) {
	t.step(core.Downed{Why: why})
	for i := range t.berths {
		t.berths[i].downed()
	}
}

// String is for people.
func (t *station) String() string { return "the shards " + t.set.Name }
