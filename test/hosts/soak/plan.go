//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// hosts are the same in every round: five, or as many as --members says.
var hosts = hostNames(usualMembers)

const usualMembers = 5

func hostNames(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("n%d", i+1))
	}
	return names
}

// mode is what runs on the hosts.
type mode string

const (
	moduleMode mode = "module" // the stock agent of Serf's module, with `sbr agent` beside it
	debianMode mode = "debian" // the same with Debian's 0.9.4
	ownMode    mode = "own"    // `sbr agent` is the node
)

// shape is how the network between the hosts is cut.
type shape string

const (
	halves   shape = "halves"
	lone     shape = "lone"
	threeWay shape = "three-way"
	isolated shape = "isolated" // one host is cut off from the others and from the store
	bridge   shape = "bridge"
	oneWay   shape = "one-way"
	flapping shape = "flapping"
	loss     shape = "loss"
)

// clean reports whether the shape makes sides: hosts that hear each other form a side, none belongs to two.
func (s shape) clean() bool {
	return s == halves || s == lone || s == threeWay || s == isolated || s == whole
}

// kind is what else goes wrong.
type kind string

const (
	storeSome   kind = "store cut off for some"
	storeSide   kind = "store cut off for one side"
	storeAll    kind = "store cut off for everyone"
	pause       kind = "SIGSTOP"
	kill        kind = "kill -9"
	storeKilled kind = "store killed" // of Kubernetes the API server
	storePaused kind = "store paused" // of Kubernetes etcd
	healEarly   kind = "healed in the race"
	secondCut   kind = "second cut"
)

// target is which of a host's processes a fault hits.
type target string

const (
	both  target = "both"
	agent target = "sbr"
	serf  target = "serf"
)

// span is a time in a plan. It is written as Go writes durations.
type span time.Duration

// MarshalJSON implements json.Marshaler.
func (s span) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

func (s span) String() string { return time.Duration(s).String() }

// fault is one thing that goes wrong besides the cut.
type fault struct {
	Kind kind `json:"kind"`
	// At counts from the cut, or from When; For is how long the store or the rights are away.
	At   span   `json:"at"`
	When moment `json:"when,omitempty"`
	// Back is to the beginning of which round a store goes back that forgets: 0 this one, 1 the one before.
	Back  int      `json:"back,omitempty"`
	For   span     `json:"for,omitempty"`
	Hosts []string `json:"hosts,omitempty"`
	// By is the host whose agent an operator asks.
	By     string     `json:"by,omitempty"`
	Target target     `json:"target,omitempty"`
	Sides  [][]string `json:"sides,omitempty"`
}

// link is one direction between two hosts.
type link struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// plan is everything that is decided about a round before it is played.
type plan struct {
	Seed  uint64 `json:"seed"`
	Round int    `json:"round"`
	Mode  mode   `json:"mode"`
	// Family is what the round is about; empty: anything. Stable is its stable-after; empty: that of the
	// settings.
	Family family `json:"family,omitempty"`
	Stable string `json:"stable,omitempty"`
	Shape  shape  `json:"shape"`
	// Sides are the groups of a cut; the last host of each of two is the bridge, if there is one.
	Sides [][]string `json:"sides,omitempty"`
	// Links carry nothing, where single links are cut.
	Links []link `json:"links,omitempty"`
	// Percent is lost of what Lossy receive.
	Percent int      `json:"percent,omitempty"`
	Lossy   []string `json:"lossy,omitempty"`
	// Down and Up are the halves of a flapping link's period.
	Down span `json:"down,omitempty"`
	Up   span `json:"up,omitempty"`
	// Lasts is when a shape without sides is healed; zero: once one side is up.
	Lasts  span    `json:"lasts,omitempty"`
	Faults []fault `json:"faults"`
	// RestartEarly starts the losers again while the cut lasts, otherwise once it is healed.
	RestartEarly bool `json:"restart-early"`
	// ContinueEarly continues what stands still once one side is up, otherwise once the cut is healed.
	ContinueEarly bool `json:"continue-early"`
	// Single is about a program that runs in one place; nil: none does.
	Single *singlePlan `json:"single,omitempty"`
}

// dice draw what a plan consists of.
type dice struct{ *rand.Rand }

// newPlan is the plan of a round. It depends on nothing else.
func newPlan(seed uint64, round int) plan {
	d := dice{rand.New(rand.NewPCG(seed, uint64(round)))}
	p := plan{Seed: seed, Round: round, Mode: moduleMode, Faults: []fault{}}
	switch x := d.IntN(100); {
	case x < 15:
		p.Mode = debianMode
	case x < 30:
		p.Mode = ownMode
	}
	d.shape(&p)
	d.faults(&p)
	p.RestartEarly = d.IntN(3) == 0
	p.ContinueEarly = d.IntN(2) == 0 && !slices.ContainsFunc(p.hit(pause), p.cutOffFromStore)
	return p
}

// shape draws the cut.
func (d dice) shape(p *plan) {
	h := slices.Clone(hosts)
	d.Shuffle(len(h), func(i, j int) { h[i], h[j] = h[j], h[i] })
	switch x := d.IntN(100); {
	case x < 34:
		p.Shape, p.Sides = halves, [][]string{h[:3], h[3:]}
	case x < 48:
		p.Shape, p.Sides = lone, [][]string{h[:4], h[4:]}
	case x < 62:
		p.Shape, p.Sides = threeWay, [][]string{h[:2], h[2:4], h[4:]}
	case x < 72:
		p.Shape, p.Sides = isolated, [][]string{h[:4], h[4:]}
	case x < 79:
		p.Shape, p.Sides = bridge, [][]string{{h[0], h[1], h[4]}, {h[2], h[3], h[4]}}
	case x < 86:
		p.Shape = oneWay
		for _, other := range h[1 : 2+d.IntN(4)] {
			p.Links = append(p.Links, link{h[0], other})
		}
		if d.IntN(2) == 0 { // the other direction
			for i, l := range p.Links {
				p.Links[i] = link{l.To, l.From}
			}
		}
	case x < 93:
		p.Shape, p.Sides = flapping, [][]string{h[:3], h[3:]}
		p.Down, p.Up = d.between(time.Second, 6*time.Second), d.between(time.Second, 6*time.Second)
	default:
		p.Shape, p.Percent, p.Lossy = loss, 10+d.IntN(31), h[:1+d.IntN(5)]
	}
	if !p.Shape.clean() {
		p.Lasts = d.between(16*time.Second, 26*time.Second)
	}
}

// between draws a time in whole tenths of a second.
func (d dice) between(from, to time.Duration) span {
	const step = 100 * time.Millisecond
	return span(from + time.Duration(d.Int64N(int64((to-from)/step)+1))*step)
}

// moment draws when a fault comes: half of them while the sides race for the lease.
func (d dice) moment() span {
	if d.IntN(2) == 0 {
		return d.between(4500*time.Millisecond, 7*time.Second)
	}
	return d.between(0, 9*time.Second)
}

// some draws hosts, at least one.
func (d dice) some(most int) []string {
	h := slices.Clone(hosts)
	d.Shuffle(len(h), func(i, j int) { h[i], h[j] = h[j], h[i] })
	return sorted(h[:1+d.IntN(most)])
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

// faults draws up to two faults of different kinds.
func (d dice) faults(p *plan) {
	n := 0
	switch x := d.IntN(100); {
	case x < 20:
	case x < 70:
		n = 1
	default:
		n = 2
	}
	for len(p.Faults) < n {
		f := d.fault(p)
		if !slices.ContainsFunc(p.Faults, func(g fault) bool {
			return g.Kind == f.Kind || g.ofStore() && f.ofStore()
		}) {
			p.Faults = append(p.Faults, f)
		}
	}
	slices.SortStableFunc(p.Faults, func(a, b fault) int { return int(a.At - b.At) })
}

// ofStore reports whether a fault keeps some or all from the store.
func (f *fault) ofStore() bool {
	switch f.Kind {
	case storeSome, storeSide, storeAll, storeKilled, storePaused:
		return true
	default:
		return false
	}
}

func (d dice) fault(p *plan) fault {
	switch x := d.IntN(100); {
	case x < 14:
		f := fault{Kind: storeSome, Hosts: d.some(4)}
		if d.IntN(3) == 0 {
			f.At = d.moment()
		}
		return f
	case x < 30 && len(p.Sides) > 0:
		return fault{Kind: storeSide, Hosts: sorted(p.Sides[d.IntN(len(p.Sides))])}
	case x < 36:
		return fault{Kind: storeAll, Hosts: hosts}
	case x < 54:
		return fault{Kind: pause, At: d.moment(), Hosts: d.some(2), Target: d.target(p)}
	case x < 66:
		return fault{Kind: kill, At: d.moment(), Hosts: d.some(1), Target: d.target(p)}
	case x < 74:
		return fault{Kind: storeKilled, At: d.moment(), For: d.between(time.Second, 6*time.Second)}
	case x < 82:
		return fault{Kind: storePaused, At: d.moment(), For: d.between(time.Second, 8*time.Second)}
	case x < 90:
		return fault{Kind: healEarly, At: max(d.moment(), span(time.Second))}
	default:
		return d.secondCut()
	}
}

func (d dice) target(p *plan) target {
	if p.Mode == ownMode {
		return both
	}
	return []target{both, both, agent, serf}[d.IntN(4)]
}

func (d dice) secondCut() fault {
	h := slices.Clone(hosts)
	d.Shuffle(len(h), func(i, j int) { h[i], h[j] = h[j], h[i] })
	at := 3 + d.IntN(2)
	return fault{Kind: secondCut, At: max(d.moment(), span(time.Second)),
		Sides: [][]string{sorted(h[:at]), sorted(h[at:])}}
}

// has returns the fault of a kind, nil if there is none.
func (p *plan) has(k kind) *fault {
	for i := range p.Faults {
		if p.Faults[i].Kind == k {
			return &p.Faults[i]
		}
	}
	return nil
}

// hit are the hosts of the fault of a kind.
func (p *plan) hit(k kind) []string {
	if f := p.has(k); f != nil {
		return f.Hosts
	}
	return nil
}

// cutOffFromStore reports whether a host is cut off from the store at some time of the round, by the network.
func (p *plan) cutOffFromStore(host string) bool {
	if p.Shape == isolated && p.Sides[1][0] == host {
		return true
	}
	for _, k := range []kind{storeSome, storeSide, storeAll} {
		if slices.Contains(p.hit(k), host) {
			return true
		}
	}
	return false
}

// String says what is going to happen, on one line.
func (p *plan) String() string {
	var b strings.Builder
	b.WriteString(string(p.Shape))
	switch p.Shape {
	case loss:
		fmt.Fprintf(&b, " %d %% at %s", p.Percent, strings.Join(sorted(p.Lossy), " "))
	case whole:
	default:
		if len(p.Sides) > 0 {
			b.WriteString(" " + sidesText(p.Sides))
		}
		for _, l := range p.Links {
			fmt.Fprintf(&b, " %s>%s", l.From, l.To)
		}
	}
	if p.Shape == flapping {
		fmt.Fprintf(&b, " %v/%v", p.Down, p.Up)
	}
	if p.Stable != "" {
		b.WriteString(", stable-after " + p.Stable)
	}
	for _, f := range p.Faults {
		b.WriteString(" + " + f.String())
	}
	if p.Single != nil {
		b.WriteString("; " + p.Single.String())
	}
	return b.String()
}

func sidesText(sides [][]string) string {
	var texts []string
	for _, s := range sides {
		texts = append(texts, strings.Join(sorted(s), " "))
	}
	return strings.Join(texts, " | ")
}

// String is the fault with its time.
func (f *fault) String() string {
	text := string(f.Kind)
	if f.Target != "" {
		text += " " + string(f.Target)
	}
	switch {
	case f.Kind == secondCut:
		text += " " + sidesText(f.Sides)
	case len(f.Hosts) > 0 && len(f.Hosts) < len(hosts):
		text += " " + strings.Join(f.Hosts, " ")
	}
	if f.By != "" {
		text += " by " + f.By
	}
	switch f.When {
	case beforeCut:
		text += " before the cut"
	case afterVerdict:
		text += fmt.Sprintf(" %v after the verdict", f.At)
	default:
		text += fmt.Sprintf(" at %v", f.At)
	}
	if f.For > 0 {
		text += fmt.Sprintf(" for %v", f.For)
	}
	return text
}
