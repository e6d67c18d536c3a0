package shrink

import (
	"slices"

	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// faults makes each step say something simpler. Every change is one way, so that there is an end.
func (z *shrinker) faults() {
	for i := range z.best.Steps {
		for _, simpler := range []func(st *scenario.Step){
			withoutEnd, plainStore, deletedStore, plainClock, bothWays, everywhere, plainRestart, noReturn, noEnd,
		} {
			z.step(i, simpler)
		}
		z.groups(i)
		z.victims(i)
	}
}

// groups makes one group of two, as long as there are more than two.
func (z *shrinker) groups(i int) {
	for p := z.best.Steps[i].Partition; p != nil && len(*p) > 2; p = z.best.Steps[i].Partition {
		merged := slices.Clone((*p)[:len(*p)-1])
		last := len(merged) - 1
		merged[last] = append(slices.Clone(merged[last]), (*p)[len(*p)-1]...)
		if !z.step(i, func(st *scenario.Step) { st.Partition = &merged }) {
			return
		}
	}
}

// victims hurts the store for fewer nodes, and removes fewer of them.
func (z *shrinker) victims(i int) {
	for _, list := range []func(st *scenario.Step) **[]string{
		func(st *scenario.Step) **[]string { return &st.Nodes },
		func(st *scenario.Step) **[]string { return &st.ForceLeave },
		func(st *scenario.Step) **[]string { return &st.On },
	} {
		hit := *list(&z.best.Steps[i])
		if hit == nil {
			continue
		}
		fewest(len(*hit), func(keep []int) bool {
			left := picked(*hit, keep)
			return z.step(i, func(st *scenario.Step) { *list(st) = &left })
		})
	}
}

// withoutEnd lets a fault of the store last.
func withoutEnd(st *scenario.Step) {
	if st.LeaseStore != nil || st.Rights != nil {
		st.For = nil
	}
}

// plainStore makes the store unreachable instead of something subtle.
func plainStore(st *scenario.Step) {
	if st.LeaseStore != nil || st.Rights != nil {
		st.LeaseStore, st.Rights = &scenario.StoreFault{Kind: "down"}, nil
	}
}

// deletedStore deletes the record instead of restoring an older one.
func deletedStore(st *scenario.Step) {
	if st.LeaseStore != nil && st.LeaseStore.Change.Restore != nil {
		st.LeaseStore = &scenario.StoreFault{Kind: "forget"}
	}
}

// everywhere lets an operator remove members wherever they are called failed.
func everywhere(st *scenario.Step) { st.On = nil }

// plainRestart brings a member back under its name and with its state.
func plainRestart(st *scenario.Step) { st.As, st.State = nil, nil }

// plainClock keeps one of skew and rate.
func plainClock(st *scenario.Step) {
	if st.Clock != nil && st.Clock.Skew != nil && st.Clock.Rate != nil {
		st.Clock = &scenario.Clock{Node: st.Clock.Node, Rate: st.Clock.Rate}
	}
}

// bothWays cuts a link both ways instead of one.
func bothWays(st *scenario.Step) {
	if st.CutOneWay != nil {
		st.Cut, st.CutOneWay = st.CutOneWay, nil
	}
}

// noReturn is a crash instead of a restart.
func noReturn(st *scenario.Step) {
	if st.Restart != nil {
		st.Crash, st.Restart, st.As, st.State = st.Restart, nil, nil, nil
	}
}

// noEnd is a crash instead of a pause.
func noEnd(st *scenario.Step) {
	if st.Pause != nil {
		st.Crash, st.Pause, st.For = st.Pause, nil, nil
	}
}
