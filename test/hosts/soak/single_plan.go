//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
)

// scene is what a round with a singleton, or with shards, is about.
type scene string

const (
	cutScene     scene = "cut" // the cut and the faults of a plan without a singleton
	stillScene   scene = "host stands still"
	crashScene   scene = "host crashes"
	rollingScene scene = "rolling update"
	agentScene   scene = "sbr agent killed"
	runScene     scene = "sbr run killed"
	programScene scene = "program killed"
	leaveScene   scene = "host leaves"
	killScene    scene = "process killed"
)

// whole is no cut at all.
const whole shape = "no cut"

// What else may go wrong where there is a singleton.
const (
	crash         kind = "power failure"
	runKilled     kind = "kill -9 sbr run"
	programKilled kind = "kill -9 of the program"
	departure     kind = "leave"
	desertion     kind = "leave with its shards"
)

// singlePlan is what a plan has to say of a singleton, or of shards.
type singlePlan struct {
	// Shards is how many there are; zero: it is a singleton.
	Shards int           `json:"shards,omitempty"`
	Scene  scene         `json:"scene"`
	Guard  cluster.Guard `json:"guard"`
	// Aim lets the hosts change roles at the beginning, so that the program runs where it hurts.
	Aim bool `json:"aim"`
	// WakesFirst is for how long a program that has stood still is the only one on its host to go on.
	WakesFirst span `json:"wakes-first,omitempty"`
	// NoLedger are cut off from what the program writes to, while the cut lasts.
	NoLedger []string `json:"no-ledger,omitempty"`
	// Order is that of a rolling update. In peace: `sbr run` is stopped before its agent, otherwise it stays
	// and attaches again; shards are handed over before their node leaves, otherwise it leaves with them.
	Order   []string `json:"order,omitempty"`
	InPeace bool     `json:"in-peace,omitempty"`
	// Farewells are those of a round of planned changes; nil: it is none.
	Farewells []farewell `json:"farewells,omitempty"`
	// DrainsCoordinator: shards are handed over by the coordinator's host before anything happens, otherwise
	// by another that the round names.
	DrainsCoordinator bool `json:"drains-coordinator,omitempty"`
}

// What is drawn for what runs in one place, and for shards, is kept apart from what is drawn for the rest.
const (
	ofSingle = 1 << 32
	ofShards = 2 << 32
)

// share is a scene, how many rounds of a hundred are about it or one before, and the fault that it is about.
type share struct {
	scene  scene
	upTo   int
	kind   kind
	target target
}

var singleShares = []share{
	{cutScene, 48, "", ""}, {stillScene, 62, pause, both}, {crashScene, 75, crash, ""},
	{rollingScene, 85, "", ""}, {agentScene, 90, kill, agent},
	{runScene, 95, runKilled, ""}, {programScene, 100, programKilled, ""},
}

// A host that leaves may leave with its shards.
var shardShares = []share{
	{cutScene, 44, "", ""}, {stillScene, 58, pause, both}, {crashScene, 72, crash, ""},
	{rollingScene, 82, "", ""}, {leaveScene, 94, departure, ""}, {killScene, 100, kill, both},
}

// newSinglePlan is the plan of a round with a singleton: each other one has a lease.
func newSinglePlan(seed uint64, round int) plan {
	p := newPlan(seed, round)
	d := dice{rand.New(rand.NewPCG(seed, ofSingle|uint64(round)))}
	p.Single = &singlePlan{Guard: guards[(round+1)%2], Aim: d.IntN(4) > 0, InPeace: d.IntN(2) == 0}
	if d.IntN(2) == 0 {
		p.Single.WakesFirst = d.between(100*time.Millisecond, 500*time.Millisecond)
	}
	d.scene(&p, singleShares)
	return p
}

// newShardPlan is the plan of a round with shards: each other one has leases. Their hosts are nodes of their
// own.
func newShardPlan(seed uint64, round int) plan {
	p := newPlan(seed, round)
	p.Mode = ownMode
	for i := range p.Faults {
		if p.Faults[i].Target != "" {
			p.Faults[i].Target = both
		}
	}
	d := dice{rand.New(rand.NewPCG(seed, ofShards|uint64(round)))}
	p.Single = &singlePlan{Guard: guards[(round+1)%2], Aim: d.IntN(2) > 0, InPeace: d.IntN(2) == 0}
	p.Single.Shards, p.Single.DrainsCoordinator = shardCount, d.IntN(2) == 0
	d.scene(&p, shardShares)
	return p
}

// scene draws what the round is about: what newPlan has drawn, or one fault on one host, or a rolling update.
func (d dice) scene(p *plan, shares []share) {
	s, victim := p.Single, []string{hosts[d.IntN(len(hosts))]}
	x := d.IntN(100)
	c := shares[slices.IndexFunc(shares, func(c share) bool { return x < c.upTo })]
	s.Scene = c.scene
	switch c.scene {
	case cutScene:
		if n := len(p.Sides); n > 0 && d.IntN(6) == 0 {
			s.NoLedger = sorted(p.Sides[n-1])
		}
	case rollingScene:
		s.Order = slices.Clone(hosts)
		d.Shuffle(len(s.Order), func(i, j int) { s.Order[i], s.Order[j] = s.Order[j], s.Order[i] })
		p.quiet()
	default:
		f := fault{Kind: c.kind, Hosts: victim, Target: c.target}
		if f.Kind == departure && !s.InPeace {
			f.Kind = desertion
		}
		p.quiet(f)
	}
}

// quiet replaces the cut and all faults by these faults.
func (p *plan) quiet(faults ...fault) {
	p.Shape, p.Sides, p.Links, p.Percent, p.Lossy = whole, [][]string{slices.Clone(hosts)}, nil, 0, nil
	p.Down, p.Up, p.Lasts, p.Faults = 0, 0, 0, append([]fault{}, faults...)
	p.RestartEarly, p.ContinueEarly = false, true
}

// victim is the host on which the singleton would suffer most.
func (p *plan) victim() string {
	if f := p.Single.Farewells; len(f) > 0 {
		return f[0].Host
	}
	for _, k := range []kind{pause, crash, kill, runKilled, programKilled, departure, desertion} {
		if h := p.hit(k); len(h) > 0 {
			return h[0]
		}
	}
	switch n := len(p.Sides); {
	case n > 0:
		return p.Sides[n-1][0]
	case len(p.Lossy) > 0:
		return p.Lossy[0]
	default:
		return p.Links[0].From
	}
}

// swap lets two hosts change roles.
func (p *plan) swap(a, b string) {
	other := func(name string) string {
		switch name {
		case a:
			return b
		case b:
			return a
		default:
			return name
		}
	}
	all := func(names []string) []string {
		if names == nil {
			return nil
		}
		changed := make([]string, len(names))
		for i, name := range names {
			changed[i] = other(name)
		}
		return changed
	}
	groups := func(sides [][]string) (changed [][]string) {
		for _, side := range sides {
			changed = append(changed, all(side))
		}
		return changed
	}
	p.Sides, p.Lossy = groups(p.Sides), all(p.Lossy)
	p.Links, p.Faults = slices.Clone(p.Links), append([]fault{}, p.Faults...)
	for i, l := range p.Links {
		p.Links[i] = link{other(l.From), other(l.To)}
	}
	for i := range p.Faults {
		f := &p.Faults[i]
		f.Hosts, f.Sides = all(f.Hosts), groups(f.Sides)
	}
	single := *p.Single
	single.NoLedger, single.Order = all(single.NoLedger), all(single.Order)
	single.Farewells = slices.Clone(single.Farewells)
	for i := range single.Farewells {
		single.Farewells[i].Host = other(single.Farewells[i].Host)
	}
	p.Single = &single
}

// alone reports whether one fault at one instant is all that the singleton has to bear, so that a bound can
// be computed for it.
func (p *plan) alone() bool {
	switch p.Single.Scene {
	case stillScene, crashScene, leaveScene:
		return true
	case cutScene:
		return p.bounded() && !slices.ContainsFunc(p.Faults, func(f fault) bool { return f.ofStore() })
	default:
		return false
	}
}

// planned reports whether the round is one of planned changes.
func (s *singlePlan) planned() bool { return len(s.Farewells) > 0 }

// String is what the singleton adds to what is going to happen.
func (s *singlePlan) String() string {
	text := string(s.Guard)
	if s.planned() {
		return text + ", " + s.farewells()
	}
	if s.Scene == rollingScene {
		text += fmt.Sprintf(", %s %v", s.Scene, s.Order)
		if s.Shards > 0 && !s.InPeace {
			text += " with their shards"
		}
	}
	if len(s.NoLedger) > 0 {
		text += fmt.Sprintf(", no ledger for %v", s.NoLedger)
	}
	if s.WakesFirst > 0 && s.Scene == stillScene {
		text += fmt.Sprintf(", the program goes on %v before the rest", s.WakesFirst)
	}
	if s.Aim {
		text += ", aimed at the " + map[bool]string{false: "holder", true: "coordinator"}[s.Shards > 0]
	}
	return text
}
