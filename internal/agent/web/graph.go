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

// row is a member, as the table and the picture of the cluster show it.
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

	// Title says all of it; Word is what is not as usual. Inside stands in its node, Sign behind its name among many.
	Title  string `json:"title"`
	Word   string `json:"word"`
	Inside string `json:"inside"`
	Sign   string `json:"sign"`
	Odd    bool   `json:"odd"`
	Holder bool   `json:"holder"` // of the lease
}

// group is some of many members: those of one kind.
type group struct {
	Kind  string `json:"kind"`
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
		w := row{
			Name: clean(m.Name), Self: m.Incarnation == r.Incarnation, Kind: kindOf(m), Status: line(m.Status),
			By: list(r.missedBy[m.Name], 4), Addr: clean(m.Address), Roles: clean(strings.Join(m.Roles, " ")), ID: clean(m.Incarnation),
			Holder: m.Incarnation == r.Lease.Holder && m.Incarnation != "",
			Odd:    untagged[m.Name] || disagree[m.Name] || elsewhere[m.Name],
		}
		w.Sight = sights[w.Kind]
		if w.By == "" && w.Kind == kindMissed {
			w.By = "this member"
		}
		leads := m.Name == r.Leader && m.Reachable
		var notes []string
		note := func(is bool, text string) {
			if is {
				notes = append(notes, text)
			}
		}
		note(w.Self, "this member")
		note(leads, "★ leads this side")
		note(w.Holder, "◆ holds the lease")
		note(untagged[m.Name], "⚠ no resolver")
		note(disagree[m.Name], "⚠ other configuration")
		note(elsewhere[m.Name], "⚠ other lease store")
		w.Notes = strings.Join(notes, ", ")
		w.Title, w.Word, w.Inside, w.Sign = w.title(), w.word(), r.inside(&w, leads), w.sign(leads, len(r.missedBy[m.Name]))
		w.Odd = w.Odd || m.Status == sbr.Joining.String()
		all[i] = w
	}
	return all
}

// draw fills in the picture of the cluster.
func (v *view) draw(r *reading) {
	if len(r.Members) > inRing {
		v.Groups, v.Key = r.groups(), "✕ n: so many members do not reach it · ★ leads this side · ◆ holds the lease"
		return
	}
	v.Ring = &ring{Label: r.tellRing(), Links: r.links()}
	v.Key = "A: this side · B: cannot be reached from here · ■: downed · ★ leads this side · ◆ holds the lease · dashed: cut · arrow: works in its direction alone"
	if len(r.Members) > allLinks {
		v.Key += " · only broken links are drawn"
	}
}

// inside is the sign within a node: its side, or that it is gone, and that it leads. Among many there is room for one.
func (r *reading) inside(m *row, leads bool) string {
	switch {
	case m.Kind == kindDowned:
		return "■"
	case m.Kind == kindMissed:
		return "B"
	case leads && (len(r.suspects) == 0 || len(r.Members) > besides):
		return "★"
	case leads:
		return "★A"
	case len(r.suspects) > 0:
		return "A"
	default:
		return ""
	}
}

// sign is all that there is to see of a member among many: so many miss it.
func (m *row) sign(leads bool, missedBy int) (sign string) {
	if m.Odd {
		sign += "⚠"
	}
	if leads {
		sign += "★"
	}
	if m.Holder {
		sign += "◆"
	}
	switch {
	case m.Kind == kindDowned:
		return sign + "■"
	case missedBy > 0:
		return sign + "✕" + number(missedBy)
	case m.Kind == kindMissed:
		return sign + "✕"
	default:
		return sign
	}
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

// groups are the kinds of member that there are in a large cluster.
func (r *reading) groups() (all []group) {
	for _, g := range []struct {
		kind, title string
		n           int
	}{
		{kindMissed, "cannot be reached from here (side B)", len(r.suspects)},
		{kindReached, "on this side (side A)", len(r.alive) - len(r.suspects)},
		{kindDowned, "downed", len(r.downed)},
	} {
		if g.n > 0 {
			all = append(all, group{Kind: g.kind, Title: number(g.n) + " " + g.title})
		}
	}
	return all
}

// How many members have their names beside them, and how many all their links: of more only the broken ones are drawn.
// The script has the first number as well.
const (
	besides  = 16
	allLinks = 24
	maxLinks = 1200 // broken ones
)

// ring is the cluster as a graph. The script places its nodes, which are the members.
type ring struct {
	Label string `json:"label"`
	Links []link `json:"links"`
}

// link leads from one node to another, by their places in the list. A one-way link works in that direction alone.
type link struct {
	Kind string `json:"kind"`
	From int    `json:"from"`
	To   int    `json:"to"`
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
