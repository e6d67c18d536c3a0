package simulator

import (
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// do is a nemesis of a single step that is over at once.
func do(st scenario.Step) Nemesis { return func(p *Plan) { p.Do(st) } }

// lasting is a nemesis of a single step that is over after d.
func lasting(st scenario.Step, d time.Duration) Nemesis {
	return func(p *Plan) {
		p.Do(st)
		p.Wait(d)
	}
}

// Side is a group of members, for Partition. The name of a zone stands for all members in it.
func Side(names ...string) []string { return names }

// Partition cuts the network into groups; members that are not named form one more. It replaces the last
// partition.
func Partition(groups ...[]string) Nemesis { return do(scenario.Step{Partition: &groups}) }

// Cut cuts the link between two members, both ways.
func Cut(a, b string) Nemesis { return do(scenario.Step{Cut: &[]string{a, b}}) }

// OneWay drops what from sends to the member to.
func OneWay(from, to string) Nemesis { return do(scenario.Step{CutOneWay: &[]string{from, to}}) }

// Mend repairs the link between two members, both ways. A partition stays.
func Mend(a, b string) Nemesis {
	return do(scenario.Step{Link: &[]string{a, b}, Loss: new(float64), Latency: new(time.Duration)})
}

// Heal repairs every link, whatever step cut it.
func Heal() Nemesis {
	yes := true
	return do(scenario.Step{Heal: &yes})
}

// Crash stops a member at once.
func Crash(name string) Nemesis { return do(scenario.Step{Crash: &name}) }

// Restart starts a new incarnation under the same name, and crashes the old one if it still runs.
func Restart(name string) Nemesis { return do(scenario.Step{Restart: &name}) }

// RestartAs is Restart under another name: the same machine, with its state folder, so that the others learn
// who its predecessor was.
func RestartAs(name, as string) Nemesis { return do(scenario.Step{Restart: &name, As: &as}) }

// RestartWithoutState is Restart without the state folder: the new incarnation cannot prove that the old one
// has ended.
func RestartWithoutState(name string) Nemesis {
	lost := "lost"
	return do(scenario.Step{Restart: &name, State: &lost})
}

// ForceLeave lets an operator remove members from the lists of the members that call them failed, as soon as
// they do: serf force-leave.
func ForceLeave(names ...string) Nemesis { return do(scenario.Step{ForceLeave: &names}) }

// ForceLeaveOn is ForceLeave on one member.
func ForceLeaveOn(on string, names ...string) Nemesis {
	return do(scenario.Step{ForceLeave: &names, On: &[]string{on}})
}

// Down lets an operator down a member for good, asking the member by: sbr down.
func Down(name, by string) Nemesis { return do(scenario.Step{Down: &name, By: &by}) }

// Leave lets a member leave gracefully.
func Leave(name string) Nemesis { return do(scenario.Step{Leave: &name}) }

// Join adds a member that was not there from the start.
func Join(name string) Nemesis { return do(scenario.Step{Join: &name}) }

// Pause stops a member without ending it, as SIGSTOP does, and a long garbage collection. It is over when the
// member goes on.
func Pause(name string, d time.Duration) Nemesis {
	return lasting(scenario.Step{Pause: &name, For: scenario.Exactly(d)}, d)
}

// Skew sets the wall clock of a member ahead, or with a negative time, back.
func Skew(name string, d time.Duration) Nemesis {
	return do(scenario.Step{Clock: &scenario.Clock{Node: name, Skew: &d}})
}

// ClockRate lets the monotonic clock of a member run that fast; 1 is right.
func ClockRate(name string, rate float64) Nemesis {
	return do(scenario.Step{Clock: &scenario.Clock{Node: name, Rate: &rate}})
}

// StoreDown keeps members from reaching the lease store: the named ones, or all if none is named. It is over
// after d; 0 is to the end of the run, and then what follows begins at once.
func StoreDown(d time.Duration, names ...string) Nemesis { return store("down", d, names) }

// LoseRequests loses everything on its way to the lease store. The times and names are as with StoreDown.
func LoseRequests(d time.Duration, names ...string) Nemesis { return store("lose-requests", d, names) }

// LoseResponses loses every answer of the lease store: a write takes effect, and its sender does not hear of
// it. The times and names are as with StoreDown.
func LoseResponses(d time.Duration, names ...string) Nemesis {
	return store("lose-responses", d, names)
}

// StoreConflicts lets another client touch the lease before each write. The times and names are as with
// StoreDown.
func StoreConflicts(d time.Duration, names ...string) Nemesis { return store("conflict", d, names) }

// StoreSlow lets the lease store need so much longer for each answer. The times and names are as with
// StoreDown.
func StoreSlow(by, d time.Duration, names ...string) Nemesis {
	return fault(scenario.StoreFault{Change: scenario.StoreChange{Slow: &by}}, d, names)
}

// NoRights lets the store refuse whatever members ask. The times and names are as with StoreDown.
func NoRights(d time.Duration, names ...string) Nemesis {
	none := "none"
	return hurt(scenario.Step{Rights: &none}, d, names)
}

// ForgetLease deletes the record of the lease.
func ForgetLease() Nemesis {
	return do(scenario.Step{LeaseStore: &scenario.StoreFault{Kind: "forget"}})
}

// RestoreLease makes the record what it was at that time of the run, which must be over.
func RestoreLease(then time.Duration) Nemesis {
	return do(scenario.Step{LeaseStore: &scenario.StoreFault{Change: scenario.StoreChange{Restore: &then}}})
}

func store(kind string, d time.Duration, names []string) Nemesis {
	return fault(scenario.StoreFault{Kind: kind}, d, names)
}

func fault(f scenario.StoreFault, d time.Duration, names []string) Nemesis {
	return hurt(scenario.Step{LeaseStore: &f}, d, names)
}

func hurt(st scenario.Step, d time.Duration, names []string) Nemesis {
	if len(names) > 0 {
		st.Nodes = &names
	}
	if d != 0 {
		st.For = scenario.Exactly(d)
	}
	return lasting(st, max(d, 0)) // a negative time is for Validate to name
}
