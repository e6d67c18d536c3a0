package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/internal/world"
)

// story is everything that a page draws of one run. Places on the time axis are percentages of its width, so that the same drawing
// fits a telephone, a wide screen and paper.
type story struct {
	Ticks  []tick
	Quiet  string // what is said of the time after the end of the axis
	Rows   []row
	Height int
	Lanes  []laneView
	Events []eventView
	Left   int // events for which there was no room
	Hidden int // members for which there was no room
	// Truncated: see world.History.
	Truncated bool
	Double    string
	Nobody    string
	Data      data

	h      *world.History
	cast   *cast
	events []event
	act    activity
	until  time.Duration // the end of the axis
}

// The heights of what is on the time axis, in pixels; the style sheet knows them too.
const (
	axisHeight = 26
	rowHeight  = 24
	laneHeight = 40
)

type tick struct {
	X, Text string
	Class   string // where the text stands: first, last or minor
}

// row is one line above the lanes: the network, the store, the lease.
type row struct {
	Name, Class string
	Summary     string // for whoever cannot see the bars
	Y           int
	Bars        []bar
	Marks       []markView
}

// laneView is the line of one lane.
type laneView struct {
	Label   string
	Summary string
	Y       int
	Bars    []bar
	Marks   []markView
}

// bar is a stretch of a row or a lane.
type bar struct {
	X, Width string
	End      string
	Class    string
	Text     string
	Fit      string // from which width of the axis on the text fits into the bar; empty: it never does
	Beside   string // after or before: the text stands beside the bar
	Line     int    // the base line of the text
	Indent   int    // and where it begins
	Title    string
}

// markView stands for one event or several that are close together.
type markView struct {
	X     string
	Shape string // the name of a symbol
	Count int
	Event int // the row of the first
	Title string
}

type eventView struct {
	Index          int
	At, Who, Word  string
	Kind, Text     string
	Important, Bad bool
}

func storyOf(h *world.History) *story {
	s := &story{h: h, cast: castOf(h), act: activityOf(h)}
	s.events, s.Left = eventsOf(h, s.cast)
	s.Hidden, s.Truncated = s.cast.hidden, h.Truncated
	s.Double, s.Nobody = clock(total(s.act.double)), clock(total(s.act.nobody))
	s.scale()
	s.rows()
	s.list()
	s.Data = s.data()
	return s
}

// scale ends the axis a little after the last change: a run goes on for a long time after everything has been settled.
func (s *story) scale() {
	last := time.Duration(0)
	if n := len(s.h.Changes); n > 0 {
		last = s.h.Changes[n-1].At
	}
	s.until = s.h.End
	if short := last + last/12; short < s.h.End*9/10 {
		s.until = max(short, time.Second)
		s.Quiet = fmt.Sprintf("Nothing happens between %s and the end of the run at %s.", clock(last), clock(s.h.End))
	}
	every := spacing(s.until)
	for t := time.Duration(0); t <= s.until; t += every {
		s.Ticks = append(s.Ticks, tick{X: s.x(t), Text: t.String()})
	}
	for i := range s.Ticks {
		switch last := len(s.Ticks) - 1; {
		case i == 0:
			s.Ticks[i].Class = "first"
		case i == last && s.share(every*time.Duration(i)) > 0.95:
			s.Ticks[i].Class = "last"
		case i%2 == 1:
			s.Ticks[i].Class = "minor"
		}
	}
}

// spacing is a round time that divides the axis into at most eight parts.
func spacing(until time.Duration) time.Duration {
	for _, every := range []time.Duration{
		time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
		100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second,
		10 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute,
		20 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 12 * time.Hour,
	} {
		if until <= 8*every {
			return every
		}
	}
	return until/8 + 1
}

func (s *story) x(t time.Duration) string { return percent(s.share(t)) }

func (s *story) share(t time.Duration) float64 {
	if s.until <= 0 {
		return 0
	}
	return min(max(float64(t)/float64(s.until), 0), 1)
}

func percent(share float64) string { return fmt.Sprintf("%.4g%%", math.Round(share*1e6)/1e4) }

// bar draws a stretch. Its text is shown where it fits.
func (s *story) bar(at span, class, text, title string) bar {
	from, to := s.share(at.from), s.share(at.to)
	return bar{X: percent(from), Width: percent(max(to-from, 0)), End: percent(to), Class: class, Text: text, Fit: fit(text, to-from), Line: 16, Indent: 5, Title: title}
}

// fit is a class that says from which width of the page on a text fits into its share of the axis.
func fit(text string, share float64) string {
	const letter, margin = 7.2, 10 // pixels, at most
	need := (letter*float64(len([]rune(text))) + margin) / max(share, 1e-9)
	switch {
	case need <= 240:
		return "fit-s"
	case need <= 560:
		return "fit-m"
	case need <= 900:
		return "fit-l"
	case need <= 4000:
		return "fit-x" // when somebody makes the axis wider
	default:
		return ""
	}
}

// rows are the world: what is cut, how the store is, who holds the lease, and when too many or too few were at work.
func (s *story) rows() {
	y := axisHeight
	add := func(name, class string, always bool, bands []band) *row {
		if len(bands) == 0 && !always {
			return nil
		}
		r := row{Name: name, Class: class, Y: y}
		said := make([]string, 0, len(bands))
		for _, b := range bands {
			title := fmt.Sprintf("%s, %s to %s", b.title, clock(b.from), clock(b.to))
			r.Bars = append(r.Bars, s.bar(b.span, class, b.text, title))
			said = append(said, title)
		}
		r.Summary = summary(name, said)
		y += rowHeight
		s.Rows = append(s.Rows, r)
		return &s.Rows[len(s.Rows)-1]
	}
	if r := add("network", "network", true, networkBands(s.h)); r != nil {
		r.Marks = s.marks(-1, "VIOLATION")
	}
	add("lease store", "store", false, storeBands(s.h))
	if r := add("lease", "lease", true, leaseBands(s.h)); r != nil {
		r.Marks = s.marksWhere(func(e *event) bool { return e.kind == "committed" })
		for i := range r.Bars {
			r.Bars[i].Indent = 12 // a holder begins with a verdict, whose mark stands there
		}
	}
	s.beside(add("two sides", "double", false, spanBands(s.act.double, "two sides at work after a decision")), s.act.double)
	s.beside(add("nobody", "nobody", false, spanBands(s.act.nobody, "nobody at work")), s.act.nobody)
	for i, l := range s.cast.lanes {
		v := laneView{Label: l.label, Y: y}
		var said []string
		for _, st := range l.lives {
			if st.life == world.Absent {
				continue
			}
			b := s.bar(span{st.from, st.to}, lifeClass(st.life), st.life.String(), s.stretchTitle(l, st))
			b.Line = 31
			v.Bars = append(v.Bars, b)
			said = append(said, fmt.Sprintf("%s from %s", st.life, clock(st.from)))
		}
		v.Summary = summary(l.label, said)
		v.Marks = s.marks(i)
		s.Lanes = append(s.Lanes, v)
		y += laneHeight
	}
	s.Height = y
}

// beside puts the lengths beside the bars of a row, which may be too short to be seen, where that does not cover the next one.
func (s *story) beside(r *row, spans []span) {
	const room = 0.1
	for i := range spans {
		at, next := s.share(spans[i].to), 1.0
		if i+1 < len(spans) {
			next = s.share(spans[i+1].from)
		}
		switch b := &r.Bars[i]; {
		case b.Fit == "fit-s":
		case at > 1-room && (i == 0 || s.share(spans[i].from)-s.share(spans[i-1].to) > room):
			b.Beside = "before"
		case next-at > room:
			b.Beside = "after"
		}
	}
}

// summary says a whole line in words.
func summary(name string, said []string) string {
	const limit = 30
	if len(said) > limit {
		said = append(said[:limit:limit], fmt.Sprintf("and %d more", len(said)-limit))
	}
	if len(said) == 0 {
		return name + ": nothing"
	}
	return name + ": " + strings.Join(said, "; ")
}

func (s *story) stretchTitle(l *lane, st stretch) string {
	title := fmt.Sprintf("%s: %s, %s to %s", l.label, st.life, clock(st.from), clock(st.to))
	if st.late > st.early {
		title += fmt.Sprintf(" (they came to it between %s and %s)", clock(st.early), clock(st.late))
	}
	return title
}

func lifeClass(l world.Life) string { return "life-" + strings.Fields(l.String())[0] }

// shapes are the kinds of event that have a mark on a lane, the most telling first.
var shapes = []struct{ kind, shape string }{
	{"VIOLATION", "broken"}, {"committed", "verdict"}, {"decision", "decision"}, {"verdict", "learnt"}, {"tells", "told"},
	{"asks", "asked"}, {"answer", "asked"}, {"lost", "asked"},
}

func shapeOf(kind string) int {
	return slices.IndexFunc(shapes, func(x struct{ kind, shape string }) bool { return x.kind == kind })
}

// marks are those of a lane; only of some kinds, if any are given.
func (s *story) marks(lane int, kinds ...string) []markView {
	return s.marksWhere(func(e *event) bool {
		return e.lane == lane && shapeOf(e.kind) >= 0 && (len(kinds) == 0 || slices.Contains(kinds, e.kind))
	})
}

// marksWhere puts events that would cover each other into one mark, which looks like the most telling of them.
func (s *story) marksWhere(want func(*event) bool) []markView {
	const close = 0.018 // of the axis
	var all []markView
	var first float64
	var best int
	for i := range s.events {
		e := &s.events[i]
		if !want(e) {
			continue
		}
		at, rank := s.share(e.at), shapeOf(e.kind)
		line := strings.TrimSpace(fmt.Sprintf("%s %s %s: %s", clock(e.at), e.who(s.h), e.word(), e.text))
		if n := len(all); n > 0 && at-first < close {
			m := &all[n-1]
			m.Count++
			m.Title += "\n" + line
			if rank < best {
				best, m.Shape = rank, shapes[rank].shape
			}
			continue
		}
		first, best = at, rank
		all = append(all, markView{X: percent(at), Shape: shapes[rank].shape, Count: 1, Event: i, Title: line})
	}
	return all
}

// list is the table of events.
func (s *story) list() {
	for i := range s.events {
		e := &s.events[i]
		s.Events = append(s.Events, eventView{
			Index: i, At: stamp(e.at), Who: e.who(s.h), Word: e.word(), Kind: e.kind, Text: e.text,
			Important: important(e.kind), Bad: e.kind == "VIOLATION",
		})
	}
}

// important reports whether an event is one that changes what becomes of the cluster.
func important(kind string) bool {
	switch kind {
	case "decision", "committed", "down", "partition", "cut", "heal", "crash", "VIOLATION":
		return true
	default:
		return false
	}
}
