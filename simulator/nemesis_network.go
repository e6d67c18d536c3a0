package simulator

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// Groups cuts the network into n random groups, none of them empty; more than there are members is one each,
// fewer than 2 are 2.
func Groups(n int) Nemesis {
	return func(p *Plan) {
		groups := make([][]string, min(max(n, 2), len(p.members)))
		for i, name := range p.shuffled() {
			g := i
			if i >= len(groups) {
				g = p.rng.IntN(len(groups))
			}
			groups[g] = append(groups[g], name)
		}
		p.partition(groups)
	}
}

// Halves cuts the network into two random groups of the same size; of an odd number of members one of them
// gets one more.
func Halves() Nemesis {
	return func(p *Plan) {
		all := p.shuffled()
		p.partition([][]string{all[:(len(all)+1)/2], all[(len(all)+1)/2:]})
	}
}

// LoneNode cuts one random member off.
func LoneNode() Nemesis { return OnGroup(1, func(names ...string) Nemesis { return Partition(names) }) }

// RingOfMajorities cuts links so that every member reaches a majority, and no two of them the same one. With
// three members one link is cut; with two, Halves.
func RingOfMajorities() Nemesis {
	return func(p *Plan) {
		n, place := len(p.members), p.rng.Perm(len(p.members))
		if n < 3 {
			p.Play(Halves())
			return
		}
		reach := (n/2 + 1) / 2 // to each side: a majority without the member itself, half of it, rounded up
		for i := range n {
			for j := i + 1; j < n; j++ {
				apart := max(place[i]-place[j], place[j]-place[i])
				far := min(apart, n-apart) > reach
				if n == 3 {
					far = apart == 2 // in a ring of three everybody is next to everybody
				}
				if far {
					p.Play(Cut(p.members[i], p.members[j]))
				}
			}
		}
	}
}

// Bridge cuts the cluster into two random halves that only one random member still reaches both of. With two
// members, Halves.
func Bridge() Nemesis {
	return func(p *Plan) {
		all := p.shuffled()
		if len(all) < 3 {
			p.Play(Halves())
			return
		}
		rest := all[1:] // the first is the bridge
		half := (len(rest) + 1) / 2
		left, right := p.inOrder(rest[:half]), p.inOrder(rest[half:])
		for _, a := range left {
			for _, b := range right {
				link := p.inOrder([]string{a, b})
				p.Play(Cut(link[0], link[1]))
			}
		}
	}
}

// RandomLink cuts a random link, both ways or one way.
func RandomLink() Nemesis {
	return func(p *Plan) {
		all := p.shuffled()
		if len(all) < 2 {
			return
		}
		link := p.inOrder(slices.Clone(all[:2]))
		p.Play(Choice(Cut(link[0], link[1]), OneWay(all[0], all[1])))
	}
}

// PartitionRandomly is one of Halves, LoneNode, Groups of two or three, RingOfMajorities and Bridge.
func PartitionRandomly() Nemesis {
	return Choice(Halves(), LoneNode(), Groups(2), Groups(3), RingOfMajorities(), Bridge())
}

// Swizzle cuts random members off one by one, a random time of at most gap apart, until all of them are
// alone, and brings them back one by one in another order. With n 0 chance says how many.
func Swizzle(n int, gap time.Duration) Nemesis {
	return func(p *Plan) {
		some := p.some(n)
		var alone []string
		show := func() {
			groups := make([][]string, len(alone))
			for i, name := range alone {
				groups[i] = []string{name}
			}
			p.partition(groups)
		}
		for _, i := range p.rng.Perm(len(some)) {
			alone = append(alone, some[i])
			show()
			p.Wait(p.between(0, gap))
		}
		for len(alone) > 1 {
			i := p.rng.IntN(len(alone))
			alone = slices.Delete(alone, i, i+1)
			show()
			p.Wait(p.between(0, gap))
		}
		p.Play(Heal())
	}
}

// Flap breaks the network and heals it, so many times, and leaves it healed. How it is broken, and for how
// long, chance decides each time anew: from nothing to broken, then whole from nothing to whole.
func Flap(times int, broken, whole time.Duration, cut Nemesis) Nemesis {
	once := Sequence(cut, Within(broken, Heal()), Within(whole, nil))
	return Repeat(times, 0, once)
}

// partition puts the step, with the members of each group in order and the groups in the order of their first
// members.
func (p *Plan) partition(groups [][]string) {
	sorted := make([][]string, 0, len(groups))
	for _, g := range groups {
		if len(g) > 0 {
			sorted = append(sorted, p.inOrder(slices.Clone(g)))
		}
	}
	slices.SortFunc(sorted, func(a, b []string) int {
		return slices.Index(p.members, a[0]) - slices.Index(p.members, b[0])
	})
	if len(sorted) > 0 {
		p.Play(Partition(sorted...))
	}
}

// CrashAndRestart crashes a member, and starts it again under its name after a while.
func CrashAndRestart(name string, after time.Duration) Nemesis {
	return Sequence(Crash(name), After(after, Restart(name)))
}

// JoinAnother adds a member under a new name: n6, n7 and so on in a cluster of n1 to n5.
func JoinAnother() Nemesis {
	return func(p *Plan) {
		for i := len(p.members) + 1; ; i++ {
			if name := fmt.Sprintf("n%d", i); !p.taken[name] {
				p.Play(Join(name))
				return
			}
		}
	}
}

// RollingUpdate lets every member leave and come back after away, one after the other, the youngest first, as
// a StatefulSet does. From one to the next it takes as long as every says.
func RollingUpdate(every, away time.Duration) Nemesis {
	return func(p *Plan) {
		var all []Nemesis
		for _, name := range slices.Backward(p.members) {
			all = append(all, Sequence(Leave(name), After(away, Restart(name))))
		}
		i := 0
		p.Play(Repeat(len(all), every, func(p *Plan) {
			p.Play(all[i])
			i++
		}))
	}
}

// ScrambleClocks sets the wall clock of every member at most skew off, either way, and the rate of its
// monotonic clock at most drift off 1.
func ScrambleClocks(skew time.Duration, drift float64) Nemesis {
	return func(p *Plan) {
		const grain = 1e4 // as people write it
		for _, name := range p.members {
			ahead := p.between(-skew, skew)
			rate := math.Round((1+drift*(2*p.rng.Float64()-1))*grain) / grain
			p.Do(scenario.Step{Clock: &scenario.Clock{Node: name, Skew: &ahead, Rate: &rate}})
		}
	}
}

// StoreFaults hurts the way of random members to the lease store in one of all ways, for a random time of at
// most d.
func StoreFaults(d time.Duration) Nemesis {
	return func(p *Plan) {
		length := max(p.between(0, d), time.Millisecond)
		hurt := func(f func(time.Duration, ...string) Nemesis) Nemesis {
			return OnGroup(0, func(names ...string) Nemesis { return f(length, names...) })
		}
		slow := p.between(time.Millisecond, 8*time.Second)
		p.Play(Choice(hurt(StoreDown), hurt(LoseRequests), hurt(LoseResponses), hurt(StoreConflicts),
			hurt(func(d time.Duration, names ...string) Nemesis { return StoreSlow(slow, d, names...) })))
	}
}
