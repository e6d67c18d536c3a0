package simulator

import (
	"maps"
	"time"
)

// ExpectSurvivors says exactly who runs and was not downed at the end.
func (b *Scenario) ExpectSurvivors(names ...string) *Scenario {
	set := append([]string{}, names...)
	b.s.Expect.Survivors = &set
	return b
}

// ExpectSurvivorsOneOf says that exactly one of these groups runs and was not downed at the end. Side() is nobody.
func (b *Scenario) ExpectSurvivorsOneOf(groups ...[]string) *Scenario {
	sets := append([][]string{}, groups...)
	b.s.Expect.SurvivorsOneOf = &sets
	return b
}

// ExpectSurvivorCount says how many run and were not downed at the end.
func (b *Scenario) ExpectSurvivorCount(n int) *Scenario {
	b.s.Expect.SurvivorCount = &n
	return b
}

// ExpectDown says exactly who was downed. Who crashed was not.
func (b *Scenario) ExpectDown(names ...string) *Scenario {
	set := append([]string{}, names...)
	b.s.Expect.Down = &set
	return b
}

// ExpectLeaseHolder says who holds the lease at the end; "none" is nobody.
func (b *Scenario) ExpectLeaseHolder(name string) *Scenario {
	b.s.Expect.LeaseHolder = &name
	return b
}

// ExpectResolvedWithin bounds the time from the last cut (without one, from the last crash or pause) until all who are left are at work
// and reach each other.
func (b *Scenario) ExpectResolvedWithin(d time.Duration) *Scenario {
	b.s.Expect.ResolvedWithin = &d
	return b
}

// ExpectDecision says what a member decided last, such as down-all, or "none".
func (b *Scenario) ExpectDecision(name, decision string) *Scenario {
	put(&b.s.Expect.Decisions, name, decision)
	return b
}

// ExpectSingleton says on which member a singleton runs at the end; "none" is nobody.
func (b *Scenario) ExpectSingleton(name, on string) *Scenario {
	put(&b.s.Expect.Singletons, name, on)
	return b
}

// ExpectShards says on which members the shards of a type run at the end: all of them run, and each of the members runs some.
func (b *Scenario) ExpectShards(kind string, on ...string) *Scenario {
	put(&b.s.Expect.Shards, kind, append([]string{}, on...))
	return b
}

// put puts something into a copy of a map: scenarios that were built share the old one.
func put[T any](all *map[string]T, key string, value T) {
	next := maps.Clone(*all)
	if next == nil {
		next = make(map[string]T)
	}
	next[key] = value
	*all = next
}
