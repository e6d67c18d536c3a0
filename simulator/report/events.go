package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/internal/world"
)

// maxEvents is how many events of one run are told.
const maxEvents = 4000

// event is one thing that happened, or the same thing that happened to several members of a lane.
type event struct {
	at    time.Duration
	node  int // the first it happened to; -1: the world
	lane  int // -1: the world, or a member without a lane
	kind  string
	text  string
	count int // of members
}

// who names whom it happened to.
func (e *event) who(h *world.History) string {
	switch {
	case e.node < 0:
		return ""
	case e.count > 1:
		return fmt.Sprintf("%s and %s more", h.Nodes[e.node], number(e.count-1))
	default:
		return h.Nodes[e.node]
	}
}

// eventsOf tells what happened, and how many events there was no room for.
func eventsOf(h *world.History, c *cast) (all []event, left int) {
	const together = 3 * time.Second // what several members of a lane do within this time is one event
	type key struct {
		lane int
		kind string
	}
	last := make(map[key]int)
	for i, ch := range h.Changes {
		e := event{at: ch.At, node: -1, lane: -1, count: 1}
		switch x := ch.What.(type) {
		case world.Said:
			if e.node, e.kind, e.text = x.Node, x.Kind, x.Text; e.kind == hurtKind {
				continue // what became of it is told below, for all nodes at once
			}
		case world.Hurt:
			if e.kind, e.text = hurtKind, hurt(h, i); e.text == "" {
				continue
			}
		default:
			continue
		}
		if e.node >= 0 {
			e.lane = c.of[e.node]
		}
		k := key{e.lane, e.kind}
		if len(h.Nodes) > maxOwn {
			if i, ok := last[k]; ok && e.at-all[i].at <= together && gathers(e.kind) {
				all[i].count++
				continue
			}
		}
		if len(all) >= maxEvents {
			left++
			continue
		}
		last[k] = len(all)
		all = append(all, e)
	}
	return all, left
}

const hurtKind = "store"

// hurt says which nodes the same fault of the store hits at the same moment; nothing if the change at i is not the first of them.
func hurt(h *world.History, i int) string {
	first := h.Changes[i].What.(world.Hurt)
	for j := i - 1; j >= 0 && h.Changes[j].At == h.Changes[i].At; j-- {
		if x, ok := h.Changes[j].What.(world.Hurt); ok && x.Fault == first.Fault {
			return ""
		}
	}
	var nodes []int
	for _, c := range h.Changes[i:] {
		if c.At != h.Changes[i].At {
			break
		}
		if x, ok := c.What.(world.Hurt); ok && x.Fault == first.Fault {
			nodes = append(nodes, x.Node)
		}
	}
	what := "well again"
	if first.Fault != (world.StoreFault{}) {
		what = describeFault(first.Fault)
	}
	if len(nodes) == len(h.Nodes) {
		return what + " for all"
	}
	return what + " for " + list(h.Nodes, nodes)
}

// gathers reports whether events of the kind are told together: not those that say something of their own.
func gathers(kind string) bool {
	switch kind {
	case "decision", "committed", "VIOLATION", "partition", "cut", "heal", "clock", hurtKind:
		return false
	default:
		return true
	}
}

// kindWords are the kinds that need other words for people.
var kindWords = map[string]string{
	"start":     "starts",
	"boot":      "boots",
	"crash":     "crashes",
	"pause":     "is paused",
	"resume":    "runs again",
	"leave":     "leaves",
	"asks":      "asks for the lease",
	"reads":     "reads the lease",
	"answer":    "hears of the lease",
	"releases":  "releases the lease",
	"lost":      "loses the lease",
	"committed": "writes a verdict",
	"verdict":   "learns a verdict",
	"decision":  "decides",
	"resumed":   "resumes",
	"down":      "goes down",
	"armed":     "arms",
	"partition": "network",
	"cut":       "network",
	"heal":      "network",
	hurtKind:    "lease store",
	"VIOLATION": "promise broken",
}

func (e *event) word() string {
	if e.kind == "asks" && strings.HasPrefix(e.text, "for its standing") {
		return "asks everybody"
	}
	if w, ok := kindWords[e.kind]; ok {
		return w
	}
	return e.kind
}
