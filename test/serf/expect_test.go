package serf_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// outcome is what the run has come to.
func (p *player) outcome() outcome {
	var o outcome
	o.LeaseHolder, o.Decisions = downing.NameOf(sbr.ID(p.store.Snapshot().Record.Holder)),
		make(map[string]string)
	var up []*process
	for _, n := range p.nodes {
		switch {
		case n.proc == nil:
		case n.proc.up() && !n.proc.provider.Status().Newcomer: // a waiting newcomer takes no part
			up = append(up, n.proc)
			o.Survivors = append(o.Survivors, n.Name)
		case n.proc.wasDowned():
			o.Down = append(o.Down, n.Name)
		}
		o.Decisions[n.Name] = n.last
	}
	p.atTheEnd(up)
	o.Singletons, o.Shards = p.places()
	p.mu.Lock()
	defer p.mu.Unlock()
	o.broken = slices.Clone(p.promises.broken)
	if o.Measures.Settled = p.settled(up); o.Measures.Settled {
		at, _ := p.s.Disturbed()
		o.Measures.Resolved = max(p.moved-at, 0)
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
	text := "up " + brief(o.Survivors) + ", down " + brief(o.Down)
	if o.LeaseHolder != "" {
		text += ", lease " + o.LeaseHolder
	}
	if o.Measures.Settled {
		return text + fmt.Sprintf(", %.1fs", o.Measures.Resolved.Seconds())
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
func (o *outcome) unmet(s *scenario.Scenario, timed bool) []string {
	file, r := *s, o.Result
	if !timed {
		file.Expect.ResolvedWithin = nil
	}
	r.Measures.Resolved = max(r.Measures.Resolved-leeway(s), 0)
	return file.Unmet(&r)
}
