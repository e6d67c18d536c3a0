package simulator

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

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
