package serf_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// outcome is what the run has come to.
func (p *player) outcome() outcome {
	o := outcome{holder: downing.NameOf(sbr.ID(p.store.Snapshot().Record.Holder)), decisions: make(map[string]string)}
	var up []*process
	for _, n := range p.nodes {
		switch {
		case n.proc == nil:
		case n.proc.up() && !n.proc.provider.Status().Newcomer: // a waiting newcomer takes no part
			up = append(up, n.proc)
			o.survivors = append(o.survivors, n.Name)
		case n.proc.wasDowned():
			o.down = append(o.down, n.Name)
		}
		o.decisions[n.Name] = n.last
	}
	p.atTheEnd(up)
	o.singletons, o.shards, o.missing = p.places()
	p.mu.Lock()
	defer p.mu.Unlock()
	o.broken = slices.Clone(p.promises.broken)
	if o.resolved = p.settled(up); o.resolved {
		at, _ := p.s.Disturbed()
		o.after = max(p.moved-at, 0)
	}
	return o
}

// settled reports whether every process that is up is at work and reaches all members it believes in.
func (p *player) settled(up []*process) bool {
	runs := make(map[string]bool)
	for _, x := range up {
		runs[string(x.id)] = true
	}
	for i, x := range up {
		s := x.provider.Status()
		if x.gate.paused() || s.State != sbr.StateUp {
			return false
		}
		for _, m := range s.Members {
			status, _ := sbr.ParseStatus(m.Status)
			if !m.Reachable && status <= sbr.Up || status == sbr.Up && !runs[m.Incarnation] {
				return false
			}
		}
		if slices.ContainsFunc(up[:i], func(y *process) bool { return !strangers(x, y) && p.apart(x, y) }) {
			return false
		}
	}
	return true
}

// String is one cell of a table.
func (o *outcome) String() string {
	text := "up " + brief(o.survivors) + ", down " + brief(o.down)
	if o.holder != "" {
		text += ", lease " + o.holder
	}
	if o.resolved {
		return text + fmt.Sprintf(", %.1fs", o.after.Seconds())
	}
	return text + ", unresolved"
}

// brief shows names, a few of many.
func brief(names []string) string {
	switch {
	case len(names) == 0:
		return "-"
	case len(names) > 6:
		return fmt.Sprintf("%s … (%d)", strings.Join(names[:3], " "), len(names))
	default:
		return strings.Join(names, " ")
	}
}

// leeway is what a resolution over real Serf may take longer than a file says: what is looked at only now and
// then, and where links are healed or a process goes on, the time until Serf's members find each other again,
// which is a matter of chance there.
func leeway(s *scenario.Scenario) time.Duration {
	for i := range s.Steps {
		if st := &s.Steps[i]; st.Heal != nil || st.Pause != nil {
			return 15 * time.Second
		}
	}
	return 2 * sampleEvery
}

// unmet says which expectations of the file are not met. timed: times count as well.
func (o *outcome) unmet(s *scenario.Scenario, timed bool) (failures []string) {
	e := &s.Expect
	fail := func(format string, args ...any) { failures = append(failures, fmt.Sprintf(format, args...)) }
	if e.Survivors != nil && !same(*e.Survivors, o.survivors) {
		fail("survivors: expected %v, found %v", *e.Survivors, o.survivors)
	}
	if one := e.SurvivorsOneOf; one != nil && !slices.ContainsFunc(*one, func(x []string) bool { return same(x, o.survivors) }) {
		fail("survivors: expected one of %v, found %v", *one, o.survivors)
	}
	if n := e.SurvivorCount; n != nil && *n != len(o.survivors) {
		fail("survivors: expected %d, found %v", *n, o.survivors)
	}
	if e.Down != nil && !same(*e.Down, o.down) {
		fail("down: expected %v, found %v", *e.Down, o.down)
	}
	if h := e.LeaseHolder; h != nil && *h != o.holder && (*h != "none" || o.holder != "") {
		fail("lease-holder: expected %s, found %q", *h, o.holder)
	}
	if d := e.ResolvedWithin; d != nil && timed && (!o.resolved || o.after > *d+leeway(s)) {
		fail("resolved-within: expected %v, found %v (resolved: %v)", *d, o.after, o.resolved)
	}
	for name, want := range e.Decisions {
		if found := o.decisions[name]; !strings.EqualFold(found, want) && (found != "" || want != "none") {
			fail("decisions: %s: expected %s, found %q", name, want, found)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Singletons)) {
		if want, found := e.Singletons[name], o.singletons[name]; want != found {
			fail("singletons: %s: expected on %s, found on %s", name, want, found)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(e.Shards)) {
		if want, found := e.Shards[kind], o.shards[kind]; !same(want, found) || o.missing[kind] > 0 {
			fail("shards: %s: expected on %v, found on %v, and %d nowhere", kind, want, found, o.missing[kind])
		}
	}
	return failures
}

// same reports whether two lists hold the same names, in any order.
func same(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
