package web

import (
	"strings"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// inRing is how many members are drawn as a ring. More are groups of names.
const inRing = 60

// The kinds of member, as seen from here.
const (
	kindReached = "reached"
	kindMissed  = "missed"
	kindDowned  = "downed"
)

// row is a member in the table.
type row struct {
	Name   string `json:"name"`
	Self   bool   `json:"self"`
	Kind   string `json:"kind"`
	Sight  string `json:"sight"`
	Status string `json:"status"`
	By     string `json:"by"`
	Addr   string `json:"addr"`
	Roles  string `json:"roles"`
	ID     string `json:"id"`
	Notes  string `json:"notes"`
}

// group is some of many members.
type group struct {
	Kind  string `json:"kind"`
	Title string `json:"title"`
	Chips []chip `json:"chips"`
}

type chip struct {
	Name  string `json:"name"`
	Sign  string `json:"sign"`
	Class string `json:"class"`
	Title string `json:"title"`
}

func kindOf(m *downing.MemberStatus) string {
	switch {
	case m.Status == sbr.Down.String():
		return kindDowned
	case m.Reachable:
		return kindReached
	default:
		return kindMissed
	}
}

var sights = map[string]string{kindReached: "reachable", kindMissed: "✕ unreachable", kindDowned: "■ downed"}

// set holds names, or incarnations.
type set map[string]bool

func setOf(names []string) set {
	s := make(set, len(names))
	for _, n := range names {
		s[n] = true
	}
	return s
}

func (r *reading) rows() []row {
	untagged, disagree, elsewhere := setOf(r.Untagged), setOf(r.Disagree), setOf(r.OtherStore)
	all := make([]row, len(r.Members))
	for i := range r.Members {
		m := &r.Members[i]
		var notes []string
		note := func(is bool, text string) {
			if is {
				notes = append(notes, text)
			}
		}
		self := m.Incarnation == r.Incarnation
		note(self, "this member")
		note(m.Name == r.Leader && m.Reachable, "★ leads this side")
		note(m.Incarnation == r.Lease.Holder && m.Incarnation != "", "◆ holds the lease")
		note(untagged[m.Name], "⚠ no resolver")
		note(disagree[m.Name], "⚠ other configuration")
		note(elsewhere[m.Name], "⚠ other lease store")
		k := kindOf(m)
		by := list(r.missedBy[m.Name], 4)
		if by == "" && k == kindMissed {
			by = "this member"
		}
		all[i] = row{
			Name: clean(m.Name), Self: self, Kind: k, Sight: sights[k], Status: line(m.Status), By: by,
			Addr: clean(m.Address), Roles: clean(strings.Join(m.Roles, " ")), ID: clean(m.Incarnation), Notes: strings.Join(notes, ", "),
		}
	}
	return all
}

// draw fills in the picture of the cluster.
func (v *view) draw(r *reading) {
	if len(r.Members) > inRing {
		v.Groups, v.Key = r.groups(v.Members), "✕ n: so many members do not reach it · ★ leads this side · ◆ holds the lease"
		return
	}
	v.Ring = r.ring(v.Members)
	v.Key = "A: this side · B: cannot be reached from here · ■: downed · ★ leads this side · ◆ holds the lease · dashed: cut · arrow: works in its direction alone"
	if len(r.Members) > allLinks {
		v.Key += " · only broken links are drawn"
	}
}

// inside is the sign within a node: its side, or that it is gone, and that it leads.
func (r *reading) inside(m *row, little bool) (sign string) {
	if strings.Contains(m.Notes, "★") {
		sign = "★"
	}
	switch {
	case m.Kind == kindDowned:
		return "■"
	case m.Kind == kindMissed:
		return "B"
	case len(r.suspects) > 0 && !(little && sign != ""):
		return sign + "A"
	}
	return sign
}

func (m *row) word() string {
	switch {
	case m.Self:
		return "this member"
	case m.Kind == kindReached && m.Status == sbr.Up.String():
		return ""
	case m.Kind == kindReached:
		return m.Status
	default:
		return strings.TrimLeft(m.Sight, "✕■ ")
	}
}

func (m *row) title() string {
	t := m.Name + ": " + strings.TrimLeft(m.Sight, "✕■ ")
	if m.Kind == kindReached && m.Status != sbr.Up.String() {
		t += ", " + m.Status
	}
	if m.Notes != "" {
		t += ", " + m.Notes
	}
	if m.By != "" {
		t += "; not reached by " + m.By
	}
	return t
}

func (r *reading) tellRing() string {
	text := count(len(r.alive)-len(r.suspects), "member", "members") + " on this side"
	if len(r.suspects) > 0 {
		text += "; unreachable: " + list(r.suspects, 12)
	}
	if len(r.downed) > 0 {
		text += "; downed: " + list(r.downed, 12)
	}
	return text + ". The table of members has the same in words."
}

func short(name string, most int) string {
	letters := []rune(name)
	if len(letters) <= most {
		return name
	}
	cut := string(letters[:most-1]) + "…"
	if letters[0] == isolate {
		cut += string(isolated) // clean began with the other half
	}
	return cut
}

// groups is what is drawn of a large cluster.
func (r *reading) groups(rows []row) (all []group) {
	for _, g := range []group{
		{Kind: kindMissed, Title: "cannot be reached from here (side B)"},
		{Kind: kindReached, Title: "on this side (side A)"},
		{Kind: kindDowned, Title: "downed"},
	} {
		for i := range rows {
			if m := &rows[i]; m.Kind == g.Kind {
				g.Chips = append(g.Chips, r.chip(m, r.missedBy[r.Members[i].Name]))
			}
		}
		if n := len(g.Chips); n > 0 {
			g.Title = number(n) + " " + g.Title
			all = append(all, g)
		}
	}
	return all
}

func (r *reading) chip(m *row, by []string) chip {
	c := chip{Name: short(m.Name, 22), Class: m.Kind, Title: m.title()}
	if m.Self {
		c.Class += " self"
	}
	if strings.Contains(m.Notes, "⚠") {
		c.Sign += "⚠"
	}
	for _, sign := range []string{"★", "◆"} {
		if strings.Contains(m.Notes, sign) {
			c.Sign += sign
		}
	}
	switch {
	case m.Kind == kindDowned:
		c.Sign += "■"
	case len(by) > 0:
		c.Sign += "✕" + number(len(by))
	case m.Kind == kindMissed:
		c.Sign += "✕"
	}
	return c
}

// How many members have their names beside them, and how many all their links: of more only the broken ones are drawn.
// The script has the first number as well.
const (
	besides  = 16
	allLinks = 24
	maxLinks = 1200 // broken ones
)

// ring is the cluster as a graph. The script places it.
type ring struct {
	Label string `json:"label"`
	Nodes []node `json:"nodes"`
	Links []link `json:"links"`
}

// node is a member in the ring.
type node struct {
	Kind   string `json:"kind"`
	Self   bool   `json:"self"`
	Odd    bool   `json:"odd"`
	Holder bool   `json:"holder"` // of the lease
	Inside string `json:"inside"`
	Name   string `json:"name"`
	Word   string `json:"word"`
	Title  string `json:"title"`
}

// link leads from one node to another, by their places in the list. A one-way link works in that direction alone.
type link struct {
	Kind string `json:"kind"`
	From int    `json:"from"`
	To   int    `json:"to"`
}

func (r *reading) ring(rows []row) *ring {
	n := len(rows)
	g := &ring{Label: r.tellRing(), Nodes: make([]node, n), Links: r.links()}
	for i := range rows {
		m := &rows[i]
		d := node{
			Kind: m.Kind, Self: m.Self, Holder: strings.Contains(m.Notes, "◆"), Inside: r.inside(m, n > besides),
			Odd: strings.Contains(m.Notes, "⚠") || m.Status == sbr.Joining.String(), Title: m.title(),
		}
		if n > besides {
			d.Name = short(m.Name, 14)
		} else {
			d.Name, d.Word = short(m.Name, 22), m.word()
		}
		g.Nodes[i] = d
	}
	return g
}

// links says who reaches whom as far as it is known: between two members of this side what they report, to the others only what is broken.
func (r *reading) links() (all []link) {
	missed := make(map[[2]string]bool, len(r.Reports))
	for _, p := range r.Reports {
		missed[[2]string{p.Observer, p.Subject}] = true
	}
	for i := range r.Members {
		for j := i + 1; j < len(r.Members); j++ {
			a, b := &r.Members[i], &r.Members[j]
			if kindOf(a) == kindDowned || kindOf(b) == kindDowned {
				continue
			}
			kind, back := linkKind(a, b, r.misses(missed, a, b), r.misses(missed, b, a))
			switch {
			case kind == "" || kind == "open" && len(r.Members) > allLinks || len(all) >= maxLinks:
			case back:
				all = append(all, link{kind, j, i})
			default:
				all = append(all, link{kind, i, j})
			}
		}
	}
	return all
}

func (r *reading) misses(missed map[[2]string]bool, by, of *downing.MemberStatus) bool {
	return missed[[2]string{by.Name, of.Name}] || by.Incarnation == r.Incarnation && !of.Reachable
}

// linkKind is empty where nothing is known. back says that a one-way link leads from b to a.
func linkKind(a, b *downing.MemberStatus, missesB, missesA bool) (kind string, back bool) {
	both := a.Reachable && b.Reachable
	switch {
	case missesA && missesB, !both && (missesA || missesB): // whoever cannot be reached is not heard either
		return "cut", false
	case missesB:
		return "one-way", true
	case missesA:
		return "one-way", false
	case both:
		return "open", false
	default:
		return "", false
	}
}
