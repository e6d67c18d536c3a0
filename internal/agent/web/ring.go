package web

import (
	"fmt"
	"math"
	"strings"
	"unicode"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// How many members have their names beside them, and how many all their links: of more only the broken ones are drawn.
const (
	besides  = 16
	allLinks = 24
	maxLinks = 1200 // broken ones
)

// ring is the cluster as a graph. Places are in the units of the drawing.
type ring struct {
	Label string `json:"label"`
	Box   string `json:"box"`
	Class string `json:"class"`
	Nodes []node `json:"nodes"`
	Links []link `json:"links"`
}

// node is a member. Everything but its own place is relative to that.
type node struct {
	X      float64 `json:"x"`
	Y      float64 `json:"y"`
	Class  string  `json:"class"`
	Shape  string  `json:"shape"`
	Halo   string  `json:"halo"` // around this member
	Inside string  `json:"inside"`
	Key    string  `json:"key"` // of whoever holds the lease
	Name   string  `json:"name"`
	Word   string  `json:"word"`
	Title  string  `json:"title"`
	Side   string  `json:"side"` // where the name stands: left, right, middle
	LX     float64 `json:"lx"`
	LY     float64 `json:"ly"`
	Turn   float64 `json:"turn"` // of the name, about the node
}

// link is a line; of few, those that are cut have a sign. A one-way link has an arrow at its second end, which points the way that still works.
type link struct {
	Kind string  `json:"kind"`
	X1   float64 `json:"x1"`
	Y1   float64 `json:"y1"`
	X2   float64 `json:"x2"`
	Y2   float64 `json:"y2"`
	Sign bool    `json:"sign"`
	MX   float64 `json:"mx"` // where it stands
	MY   float64 `json:"my"`
	Turn float64 `json:"turn"`
}

// ring places the members on a circle; the names of many point outwards.
func (r *reading) ring(rows []row) *ring {
	n := len(rows)
	g := &ring{Label: r.tellRing(), Nodes: make([]node, n)}
	radius, size, halo := 150.0, 20.0, 5.0
	if n > besides {
		radius, size, halo = 190, min(12, math.Floor(190*math.Pi/float64(n)*0.8)), 3
		g.Class = "large"
	}
	top, bottom, widest := 0.0, 0.0, 0.0
	for i := range rows {
		m := &rows[i]
		d := node{Class: m.Kind, Title: m.title(), Inside: r.inside(m, n > besides), Shape: shape(m.Kind, size)}
		if strings.Contains(m.Notes, "⚠") || m.Status == sbr.Joining.String() {
			d.Class += " odd"
		}
		gap := size + 8
		if m.Self {
			d.Class, d.Halo = d.Class+" self", circle(size+halo)
			gap += halo
		}
		if strings.Contains(m.Notes, "◆") {
			at := round(size * 0.8)
			d.Key = fmt.Sprintf("M%v %vl7 7l-7 7l-7 -7Z", at, at-7)
		}
		sin, cos := math.Sincos((float64(i)/float64(n) - 0.25) * 2 * math.Pi)
		d.X, d.Y = round(radius*cos), round(radius*sin)
		top, bottom = min(top, d.Y), max(bottom, d.Y)
		if n > besides {
			d.Name = short(m.Name, 14)
			d.labelOutwards(gap)
		} else {
			d.Name, d.Word = short(m.Name, 22), m.word()
			d.label(gap)
		}
		widest = max(widest, width(d.Name, 13), width(d.Word, 11))
		g.Nodes[i] = d
	}
	left, margin := radius+size+20+widest, size+38
	if n > besides {
		margin = size + 20 + widest
	}
	g.Box = fmt.Sprintf("%v %v %v %v", -round(left), round(top-margin), round(2*left), round(bottom-top+2*margin))
	g.Links = r.links(g.Nodes, size)
	return g
}

// width is about how wide a text is at a font size.
func width(text string, size float64) (w float64) {
	for _, r := range text {
		if r <= unicode.MaxASCII {
			w += 0.58 * size
		} else {
			w += size
		}
	}
	return w
}

// label puts the name beside, above or below the node.
func (d *node) label(gap float64) {
	lines := 0.0
	if d.Word != "" {
		lines = 1
	}
	switch {
	case math.Abs(d.X) < 1 && d.Y < 0:
		d.Side, d.LY = "middle", -gap-14*lines
	case math.Abs(d.X) < 1:
		d.Side, d.LY = "middle", gap+10
	case d.X < 0:
		d.Side, d.LX, d.LY = "left", -gap, 4-7*lines
	default:
		d.Side, d.LX, d.LY = "right", gap, 4-7*lines
	}
}

// labelOutwards lets the name continue the radius, upright for whoever reads it.
func (d *node) labelOutwards(gap float64) {
	d.Side, d.LX, d.LY, d.Turn = "right", gap, 4, round(math.Atan2(d.Y, d.X)*180/math.Pi)
	if d.X < -0.5 {
		d.Side, d.LX, d.Turn = "left", -gap, round(math.Remainder(d.Turn+180, 360))
	}
}

// shape tells the kinds of member apart without colour.
func shape(kind string, size float64) string {
	switch kind {
	case kindMissed:
		s := size * 1.2
		return fmt.Sprintf("M0 %vL%v 0L0 %vL%v 0Z", -s, s, s, -s)
	case kindDowned:
		s := round(size * 0.85)
		return fmt.Sprintf("M%v %vH%vV%vH%vZ", -s, -s, s, s, -s)
	default:
		return circle(size)
	}
}

func circle(r float64) string {
	return fmt.Sprintf("M%v 0A%v %v 0 1 1 %v 0A%v %v 0 1 1 %v 0Z", -r, r, r, r, r, r, -r)
}

// links draws who reaches whom as far as it is known: between two members of this side what they report, to the others only what is broken.
func (r *reading) links(nodes []node, size float64) (all []link) {
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
			if kind == "" || kind == "open" && len(r.Members) > allLinks || len(all) >= maxLinks {
				continue
			}
			if from, to := &nodes[i], &nodes[j]; back {
				all = append(all, newLink(kind, to, from, size))
			} else {
				all = append(all, newLink(kind, from, to, size))
			}
		}
	}
	for i := range all {
		all[i].Sign = all[i].Kind == "cut" && len(nodes) <= besides
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

func newLink(kind string, a, b *node, size float64) link {
	length := math.Max(math.Hypot(b.X-a.X, b.Y-a.Y), 1)
	ux, uy := (b.X-a.X)/length, (b.Y-a.Y)/length
	l := link{
		Kind: kind, X1: round(a.X + ux*size), Y1: round(a.Y + uy*size), X2: round(b.X - ux*size), Y2: round(b.Y - uy*size),
		MX: round(a.X + ux*length*0.42), MY: round(a.Y + uy*length*0.42), // not in the middle, where links cross
	}
	if kind == "one-way" {
		l.MX, l.MY = round(b.X-ux*(size+12)), round(b.Y-uy*(size+12))
		l.Turn = round(math.Atan2(uy, ux) * 180 / math.Pi)
	}
	return l
}

func round(x float64) float64 { return math.Round(x*10)/10 + 0 }
