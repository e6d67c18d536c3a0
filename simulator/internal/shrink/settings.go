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
	some(z, func(c *scenario.Scenario) *[]scenario.Shards {
		return &c.Cluster.Shards
	}, func(i int, one block) scenario.Shards {
		for n := 1; n < 8 && !z.with(func(c *scenario.Scenario) { one(c).(*scenario.Shards).Count = n }); n++ {
			continue
		}
		x := &z.best.Cluster.Shards[i]
		return scenario.Shards{Type: x.Type, Count: x.Count}
	})
}

// singletons leaves out singletons, and what is set of the others.
func (z *shrinker) singletons() {
	some(z, func(c *scenario.Scenario) *[]scenario.Singleton { return &c.Cluster.Singletons },
		func(i int, _ block) scenario.Singleton {
			return scenario.Singleton{Name: z.best.Cluster.Singletons[i].Name}
		})
}

// block points to a part of a scenario, which may be changed.
type block = func(*scenario.Scenario) any

// some leaves out some of a list, and sets the others to what plain says of each as far as possible.
func some[T any](z *shrinker, list func(*scenario.Scenario) *[]T, plain func(i int, one block) T) {
	all := *list(z.best)
	fewest(len(all), func(keep []int) bool {
		return z.with(func(c *scenario.Scenario) { *list(c) = picked(all, keep) })
	})
	for i := range *list(z.best) {
		one := func(s *scenario.Scenario) any {
			l := list(s)
			*l = slices.Clone(*l)
			return &(*l)[i]
		}
		p := plain(i, one)
		z.reset(one, &p)
		z.rounder(one, &p)
	}
}

// picked are those of a list that are kept.
func picked[T any](all []T, keep []int) (left []T) {
	for _, i := range keep {
		left = append(left, all[i])
	}
	return left
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
func (z *shrinker) reset(block block, def any) {
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

// leaves are the places, below a struct, of the values that differ from their defaults. The nodes are none:
// see members.
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
func (z *shrinker) rounder(block block, def any) {
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
