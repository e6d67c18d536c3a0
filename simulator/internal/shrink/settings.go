package shrink

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// expectations leaves out what is expected.
func (z *shrinker) expectations() {
	z.with(func(c *scenario.Scenario) { c.Expect = scenario.Expect{} })
	z.reset(func(s *scenario.Scenario) any { return &s.Expect }, &scenario.Expect{})
}

// settings sets to its default what need not be set, and makes the rest round.
func (z *shrinker) settings() {
	d := scenario.Default()
	nodes := z.best.Cluster.Nodes
	z.with(func(c *scenario.Scenario) {
		c.Cluster = d.Cluster
		c.Cluster.Nodes = nodes
	})
	z.reset(func(s *scenario.Scenario) any { return &s.Cluster }, &d.Cluster)
	z.rounder(func(s *scenario.Scenario) any { return &s.Cluster }, &d.Cluster)
	z.own()
	z.roles()
	z.singletons()
	z.shards()
}

// own leaves out what differs at single members.
func (z *shrinker) own() {
	for _, name := range slices.Sorted(maps.Keys(z.best.Cluster.Settings)) {
		without := func(c *scenario.Scenario) {
			c.Cluster.Settings = maps.Clone(c.Cluster.Settings)
			delete(c.Cluster.Settings, name)
		}
		if z.with(without) {
			continue
		}
		one := func(s *scenario.Scenario) any {
			own := *s.Cluster.Settings[name]
			s.Cluster.Settings = maps.Clone(s.Cluster.Settings)
			s.Cluster.Settings[name] = &own
			return &own
		}
		all := z.best.Cluster.SplitBrainResolver
		z.reset(one, &all)
		z.rounder(one, &all)
	}
}

// shards leaves out shards, and what is set of the others.
func (z *shrinker) shards() {
	all := z.best.Cluster.Shards
	from := *z.best
	fewest(len(all), func(keep []int) bool {
		c := from
		c.Cluster.Shards = nil
		for _, i := range keep {
			c.Cluster.Shards = append(c.Cluster.Shards, all[i])
		}
		return z.try(&c)
	})
	for i := range z.best.Cluster.Shards {
		one := func(s *scenario.Scenario) any {
			s.Cluster.Shards = slices.Clone(s.Cluster.Shards)
			return &s.Cluster.Shards[i]
		}
		plain := scenario.Shards{Type: z.best.Cluster.Shards[i].Type}
		for n := 1; n < 8 && !z.with(func(c *scenario.Scenario) { one(c).(*scenario.Shards).Count = n }); n++ {
			continue
		}
		plain.Count = z.best.Cluster.Shards[i].Count
		z.reset(one, &plain)
		z.rounder(one, &plain)
	}
}

// singletons leaves out singletons, and what is set of the others.
func (z *shrinker) singletons() {
	all := z.best.Cluster.Singletons
	from := *z.best
	fewest(len(all), func(keep []int) bool {
		c := from
		c.Cluster.Singletons = nil
		for _, i := range keep {
			c.Cluster.Singletons = append(c.Cluster.Singletons, all[i])
		}
		return z.try(&c)
	})
	for i := range z.best.Cluster.Singletons {
		plain := scenario.Singleton{Name: z.best.Cluster.Singletons[i].Name}
		one := func(s *scenario.Scenario) any {
			s.Cluster.Singletons = slices.Clone(s.Cluster.Singletons)
			return &s.Cluster.Singletons[i]
		}
		z.reset(one, &plain)
		z.rounder(one, &plain)
	}
}

// roles leaves out the roles and the zones of nodes.
func (z *shrinker) roles() {
	for i := range z.best.Cluster.Nodes.List {
		for _, less := range []func(n *scenario.Node){
			func(n *scenario.Node) { n.Roles, n.Zone = nil, "" },
			func(n *scenario.Node) { n.Roles = nil },
			func(n *scenario.Node) { n.Zone = "" },
		} {
			if i >= len(z.best.Cluster.Nodes.List) {
				return // the list has become a number
			}
			z.with(func(c *scenario.Scenario) {
				list := slices.Clone(c.Cluster.Nodes.List)
				less(&list[i])
				c.Cluster.Nodes = counted(list)
			})
		}
	}
}

// reset takes as many leaves of a block as possible back to what they are in def.
func (z *shrinker) reset(block func(*scenario.Scenario) any, def any) {
	from, defaults := *z.best, reflect.ValueOf(def).Elem()
	all := leaves(reflect.ValueOf(block(&from)).Elem(), defaults)
	fewest(len(all), func(keep []int) bool {
		c := from
		v := reflect.ValueOf(block(&c)).Elem()
		for i, at := range all {
			if !slices.Contains(keep, i) {
				v.FieldByIndex(at).Set(defaults.FieldByIndex(at))
			}
		}
		return z.try(&c)
	})
}

// leaves are the places, below a struct, of the values that differ from their defaults. The nodes are none: see members.
func leaves(v, def reflect.Value) (all [][]int) {
	for i := range v.NumField() {
		switch f := v.Field(i); f.Interface().(type) {
		case scenario.Nodes:
		case scenario.Detection:
			if f.Interface() != def.Field(i).Interface() {
				all = append(all, []int{i})
			}
		default:
			if f.Kind() == reflect.Struct {
				for _, below := range leaves(f, def.Field(i)) {
					all = append(all, append([]int{i}, below...))
				}
			} else if !reflect.DeepEqual(f.Interface(), def.Field(i).Interface()) {
				all = append(all, []int{i})
			}
		}
	}
	return all
}

// rounder makes the times and shares of a block round that are not at their default.
func (z *shrinker) rounder(block func(*scenario.Scenario) any, def any) {
	place := func(s *scenario.Scenario, at []int) reflect.Value {
		return reflect.ValueOf(block(s)).Elem().FieldByIndex(at)
	}
	for _, at := range numbers(reflect.ValueOf(block(z.best)).Elem(), reflect.ValueOf(def).Elem()) {
		set := func(x any) bool {
			return z.with(func(c *scenario.Scenario) {
				f := place(c, at)
				if f.Kind() == reflect.Pointer {
					f.Set(reflect.New(f.Type().Elem()))
					f = f.Elem()
				}
				f.Set(reflect.ValueOf(x).Convert(f.Type()))
			})
		}
		if f := reflect.Indirect(place(z.best, at)); f.CanFloat() {
			roundShare(f.Float(), func(x float64) bool { return set(x) })
		} else {
			round(time.Duration(f.Int()), func(d time.Duration) bool { return set(d) })
		}
	}
}

// roundShare is round for fractions.
func roundShare(x float64, f func(float64) bool) {
	for _, digits := range []float64{10, 100} {
		if r := math.Round(x*digits) / digits; r == x || r != 0 && f(r) {
			return
		}
	}
}

// numbers are the leaves that are times or fractions.
func numbers(v, def reflect.Value) (all [][]int) {
	for _, at := range leaves(v, def) {
		switch f := reflect.Indirect(v.FieldByIndex(at)); {
		case !f.IsValid():
		case f.Type() == reflect.TypeFor[scenario.Detection]():
			times, _ := f.Type().FieldByName("Times")
			for i := range times.Type.NumField() {
				all = append(all, slices.Concat(at, times.Index, []int{i}))
			}
		case f.CanFloat(), f.Kind() == reflect.Int64:
			all = append(all, at)
		}
	}
	return all
}
