package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

const (
	// notice is how long a cut, or an end, goes unnoticed: three probes in a row must fail.
	notice = 3 * time.Second
	// together is how far apart signs of one cut, of one heal, or of one fault of the store may be.
	together = 10 * time.Second
	// leadIn is what a run has before the first step, leadOut what it has after the last one.
	leadIn, leadOut = 20 * time.Second, 3 * time.Minute
	tenth           = 100 * time.Millisecond
)

// timedStep is a step at a time of the wall clock.
type timedStep struct {
	at   time.Time
	step scenario.Step
}

// file is the scenario, with a comment on top that says what it is made of.
func (in *incident) file() ([]byte, error) {
	in.silentEnds()
	// Of what is at one time the network comes first: a restart shows that it is whole.
	steps := slices.Concat(in.network(), in.processes(), in.stores(), in.downs)
	if len(steps) == 0 {
		return nil, errors.New("nothing happened in these logs: no member was cut off, paused, ended, downed or started again, and the store answered")
	}
	slices.SortStableFunc(steps, func(a, b timedStep) int { return a.at.Compare(b.at) })
	zero := steps[0].at.Add(-leadIn)
	since := func(at time.Time) time.Duration { return at.Sub(zero).Round(tenth) }

	s := scenario.Default()
	s.Name, s.Cluster.Nodes.Count = "imported", 0
	var speak []string
	for _, name := range in.names() {
		s.Cluster.Nodes.List = append(s.Cluster.Nodes.List, scenario.Node{Name: name})
		if len(in.members[name].starts) > 0 {
			speak = append(speak, name)
		}
	}
	s.Cluster.SplitBrainResolver.ActiveStrategy = cmp.Or(in.strategy,
		s.Cluster.SplitBrainResolver.ActiveStrategy)
	for _, d := range steps {
		d.step.At = scenario.Exactly(since(d.at))
		s.Steps = append(s.Steps, d.step)
		s.RunFor = (d.step.At.From + leadOut).Round(time.Second)
	}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("what these logs tell cannot be played: %w", err)
	}
	var top strings.Builder
	fmt.Fprintf(&top, "# From the logs of %s; 0s is %s.\n", strings.Join(speak, " "),
		zero.UTC().Format(time.RFC3339Nano))
	top.WriteString("# Not in the logs: when links were cut (estimated), settings, and the order of addresses and ages (here that of the names).\n")
	for _, t := range in.told {
		fmt.Fprintf(&top, "# %v: %s\n", since(t.at), t.text)
	}
	return append([]byte(top.String()), scenario.Format(&s)...), nil
}

// names are all members, n2 before n10.
func (in *incident) names() []string {
	stem := func(name string) string { return strings.TrimRight(name, "0123456789") }
	return slices.SortedFunc(maps.Keys(in.members), func(a, b string) int {
		return cmp.Or(strings.Compare(stem(a), stem(b)), len(a)-len(b), strings.Compare(a, b))
	})
}

// silentEnds finds incarnations that ended without a last word: they were called unreachable, and had nothing
// to say from then on.
func (in *incident) silentEnds() {
	for name, m := range in.members {
		for i, st := range m.starts {
			silent := span{from: st.last.Add(notice)}
			if i+1 < len(m.starts) {
				silent.to = m.starts[i+1].first
			}
			for _, by := range in.members {
				for _, s := range by.sees[name] {
					at := s.from.Add(-notice)
					if st.down.IsZero() && silent.has(s.from) &&
						(st.ended.IsZero() || st.status == "" && at.Before(st.ended)) {
						st.ended = at
					}
				}
			}
		}
	}
}

// processes are the steps of members that started again, ended, and stood still. A downed one ends by itself.
func (in *incident) processes() (all []timedStep) {
	for _, name := range in.names() {
		for i, st := range in.members[name].starts {
			if i > 0 {
				all = append(all, timedStep{st.first, scenario.Step{Restart: &name}})
			}
			switch {
			case !st.down.IsZero() || st.ended.IsZero():
			case st.status == "0":
				all = append(all, timedStep{cmp.Or(st.left, st.ended), scenario.Step{Leave: &name}})
			default:
				all = append(all, timedStep{st.ended, scenario.Step{Crash: &name}})
			}
		}
		for _, p := range in.members[name].pauses {
			all = append(all, timedStep{p.from, scenario.Step{Pause: &name,
				For: scenario.Exactly(p.to.Sub(p.from).Round(tenth))}})
		}
	}
	return all
}

// out reports whether a member had ended, or was down, at a time.
func (m *logged) out(at time.Time) (is bool) {
	for _, st := range m.starts {
		if st.first.After(at) {
			break
		}
		is = slices.ContainsFunc([]time.Time{st.ended, st.down, st.left}, func(t time.Time) bool {
			return !t.IsZero() && !t.After(at)
		})
	}
	return is
}

// stoodStill reports whether that is why others called a member unreachable.
func (m *logged) stoodStill(at time.Time) bool {
	return slices.ContainsFunc(m.pauses, func(p span) bool {
		return span{from: p.from, to: p.to.Add(notice)}.has(at)
	})
}

// link are two members, in the order of their names.
type link struct{ a, b string }

// called is when one member called another unreachable, for no other reason that is known.
func (in *incident) called(by, of string) (all []span) {
	for _, s := range in.members[by].sees[of] {
		if subject := in.members[of]; subject.stoodStill(s.from) || subject.out(s.from.Add(-time.Second)) {
			in.unused["topic unreachable, because of a pause or an end"]++
			continue
		}
		for _, st := range slices.Concat(in.members[by].starts, in.members[of].starts) {
			if st.first.After(s.from) && s.has(st.first) {
				s.to = st.first // a restart shows that the link works, or the next span that it does not
			}
		}
		all = append(all, s)
	}
	return all
}

// cuts are the times in which two members could not reach each other. Members call also those unreachable
// that others report, so both ends have to say so, unless the other member has no log, or was down before it
// noticed.
func (in *incident) cuts(l link) (all []span) {
	takes := [2][]span{in.called(l.a, l.b), in.called(l.b, l.a)}
	for i, other := range []*logged{in.members[l.b], in.members[l.a]} {
		for _, s := range takes[i] {
			is := len(other.starts) == 0 || slices.ContainsFunc(other.starts, func(st *start) bool {
				return !st.down.IsZero() && s.has(st.down)
			})
			for _, o := range takes[1-i] {
				if !s.meets(o) {
					continue
				}
				is = true
				if o.from.Before(s.from) {
					s.from = o.from
				}
				if s.to.IsZero() || !o.to.IsZero() && o.to.Before(s.to) {
					s.to = o.to
				}
			}
			if is {
				all = append(all, s)
			} else {
				in.unused["topic unreachable, as others reported"]++
			}
		}
	}
	return all
}

// network are the steps that cut and heal.
func (in *incident) network() (all []timedStep) {
	names, cut := in.names(), make(map[link][]span)
	var signs []time.Time
	heals := make(map[time.Time]bool)
	for i, a := range names {
		for _, b := range names[i+1:] {
			cut[link{a, b}] = in.cuts(link{a, b})
			for _, s := range cut[link{a, b}] {
				if signs = append(signs, s.from); !s.to.IsZero() {
					signs, heals[s.to] = append(signs, s.to), true
				}
			}
		}
	}
	slices.SortFunc(signs, time.Time.Compare)
	was := map[link]bool{}
	for len(signs) > 0 {
		first, n := signs[0], 1
		for n < len(signs) && heals[signs[n]] == heals[first] && signs[n].Sub(first) < together {
			n++
		}
		now := signs[n-1]
		signs = signs[n:]
		is := make(map[link]bool)
		for l, spans := range cut {
			over := heals[first] && (in.members[l.a].out(now) || in.members[l.b].out(now)) // nobody can tell
			if !over && slices.ContainsFunc(spans, func(s span) bool { return s.has(now) }) {
				is[l] = true
			}
		}
		if maps.Equal(is, was) {
			continue
		}
		at := first
		if !heals[first] {
			at = first.Add(-notice)
		}
		if len(was) > 0 {
			all = append(all, timedStep{at, scenario.Step{Heal: new(true)}})
		}
		for _, step := range wiring(names, is) {
			all = append(all, timedStep{at, step})
		}
		was = is
	}
	return all
}

// wiring are the steps that cut a whole network: a partition where that is all there is to it, or a cut for
// each link.
func wiring(names []string, cut map[link]bool) (steps []scenario.Step) {
	var groups [][]string
	group := make(map[string]int)
	whole := true // all links between groups are cut, and none within one
	for i, a := range names {
		at := len(groups)
		for _, b := range names[:i] {
			if !cut[link{b, a}] {
				at = min(at, group[b])
			}
		}
		if at == len(groups) {
			groups = append(groups, nil)
		}
		group[a], groups[at] = at, append(groups[at], a)
		for _, b := range names[:i] {
			if whole = whole && cut[link{b, a}] == (group[a] != group[b]); cut[link{b, a}] {
				steps = append(steps, scenario.Step{Cut: &[]string{b, a}})
			}
		}
	}
	if whole && len(groups) > 1 {
		return []scenario.Step{{Partition: &groups}}
	}
	return steps
}

// stores are the steps in which the store did not answer, or refused: one step for the members that it hit
// together.
func (in *incident) stores() (all []timedStep) {
	type fault struct {
		span
		nodes []string
	}
	var faults []*fault
	for _, name := range in.names() {
		for _, s := range in.members[name].store {
			if in.members[name].out(s.from) {
				in.unused["lease asked in vain by a member that had ended"]++
				continue
			}
			if starts := in.members[name].starts; s.to.IsZero() && len(starts) > 0 {
				s.to = starts[len(starts)-1].last
			}
			s.to = slices.MaxFunc([]time.Time{s.to, s.from.Add(time.Second)}, time.Time.Compare)
			i := slices.IndexFunc(faults, func(f *fault) bool {
				return f.refused == s.refused && f.from.Sub(s.from).Abs() < together && f.to.Sub(s.to).Abs() < together
			})
			if i < 0 {
				i, faults = len(faults), append(faults, &fault{span: s})
			}
			f := faults[i]
			f.from = slices.MinFunc([]time.Time{f.from, s.from}, time.Time.Compare)
			f.to = slices.MaxFunc([]time.Time{f.to, s.to}, time.Time.Compare)
			f.nodes = append(f.nodes, name)
		}
	}
	for _, f := range faults {
		step := scenario.Step{Nodes: &f.nodes, For: scenario.Exactly(f.to.Sub(f.from).Round(tenth))}
		if f.refused {
			step.Rights = new("none")
		} else {
			step.LeaseStore = &scenario.StoreFault{Kind: "down"}
		}
		all = append(all, timedStep{f.from, step})
	}
	return all
}
