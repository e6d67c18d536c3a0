package demo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Event is one line of the timeline.
type Event struct {
	At     span   `json:"at"`   // since the demonstration began
	Node   string `json:"node"` // the member it happened to; empty for what was done to the world
	Kind   string `json:"kind"` // a downing.Occurred constant, an sbr.Topic, or "world"
	Detail string `json:"detail"`
}

// KindWorld marks what the demonstration itself does.
const KindWorld = "world"

// span is a time that is shown rounded to what people want to know.
type span time.Duration

func (s span) String() string {
	to := time.Millisecond
	if time.Duration(s) < time.Second {
		to = 10 * time.Microsecond
	}
	return time.Duration(s).Round(to).String()
}

func (s span) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// gather is how long changes of one member's view are collected into one line.
const gather = 300 * time.Millisecond

// journal collects what happens and hands it on line by line.
type journal struct {
	show func(Event)

	mu       sync.Mutex
	began    time.Time
	events   []Event
	lost     map[string][]string // member -> whom it lost sight of in the present burst
	granted  time.Time
	downedAt map[string]time.Time
	said     map[string]bool
	closed   bool
}

func newJournal(show func(Event)) *journal {
	return &journal{
		show: show, began: time.Now(), lost: make(map[string][]string), downedAt: make(map[string]time.Time),
		said: make(map[string]bool),
	}
}

// world says what the demonstration itself does.
func (j *journal) world(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.write(time.Now(), "", KindWorld, fmt.Sprintf(format, args...))
}

func (j *journal) write(at time.Time, node, kind, detail string) {
	if j.closed {
		return
	}
	e := Event{At: span(at.Sub(j.began)), Node: node, Kind: kind, Detail: detail}
	j.events = append(j.events, e)
	if j.show != nil {
		j.show(e)
	}
}

// occurred handles an event that a member reports. It is called on the member's own goroutine.
func (j *journal) occurred(o downing.Occurrence) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch o.Kind {
	case downing.OccurredUnreachable:
		j.lostSight(o)
		return
	case downing.OccurredSuspended, downing.OccurredTold, downing.OccurredReachable,
		downing.OccurredDeadline, string(sbr.TopicArmed), string(sbr.TopicLease), string(sbr.TopicIgnored),
		string(sbr.TopicHealed):
		return // said by other lines
	case downing.OccurredResumed:
		o.Member, o.Text = "", "the survivors go on: "+strings.TrimPrefix(o.Text, "resumed: ")
	case downing.OccurredGranted:
		if j.granted.IsZero() {
			j.granted = o.At
		}
	case downing.OccurredDown:
		j.downedAt[o.Member] = o.At
	}
	key := o.Kind + o.Text
	if o.Verdict != nil {
		key = fmt.Sprint(o.Kind, o.Verdict.Token)
	}
	switch o.Kind {
	case downing.OccurredRefused, downing.OccurredRemoved, downing.OccurredVerdict, downing.OccurredResumed:
		if j.said[key] {
			return
		}
		j.said[key] = true
	}
	j.write(o.At, o.Member, o.Kind, o.Text)
}

// lostSight gathers the members that one member loses sight of at about the same time.
func (j *journal) lostSight(o downing.Occurrence) {
	j.lost[o.Member] = append(j.lost[o.Member], o.Subject)
	if len(j.lost[o.Member]) > 1 {
		return
	}
	time.AfterFunc(gather, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		names := j.lost[o.Member]
		delete(j.lost, o.Member)
		slices.SortFunc(names, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
		j.write(o.At, o.Member, downing.OccurredUnreachable, "no longer sees "+strings.Join(names, " "))
	})
}

// refused reports whether anybody has refused the member called name.
func (j *journal) refused(name string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.events, func(e Event) bool {
		return e.Kind == downing.OccurredRefused && strings.HasPrefix(e.Detail, name+" ")
	})
}

// conclude ends the timeline, what follows is only the tidying up, and says who was downed, and when. A
// member that was paused has learnt its standing late, which is no measure of the resolver.
func (j *journal) conclude(res *Result, cut time.Time, sides [][]string, paused string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	res.Events = slices.Clone(j.events)
	up := 0
	var last time.Time
	for _, s := range sides {
		before := len(res.Survivors)
		for _, n := range s {
			at, downed := j.downedAt[n]
			switch {
			case !downed:
				res.Survivors = append(res.Survivors, n)
				continue
			case n != paused && at.After(last):
				last = at
			}
			res.Down = append(res.Down, n)
		}
		if len(res.Survivors) > before {
			up++
		}
	}
	res.Passed = up == 1
	if !last.IsZero() {
		res.ResolvedAfter = span(last.Sub(cut))
		if !j.granted.IsZero() {
			res.DoubleActive = span(max(last.Sub(j.granted), 0))
		}
	}
}
