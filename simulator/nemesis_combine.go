package simulator

import "time"

// Sequence plays nemeses one after the other: each begins when the previous one is over.
func Sequence(all ...Nemesis) Nemesis {
	return func(p *Plan) {
		for _, n := range all {
			p.Play(n)
		}
	}
}

// Together plays nemeses at the same time. It is over when all of them are.
func Together(all ...Nemesis) Nemesis {
	return func(p *Plan) {
		start, end := p.now, p.now
		for _, n := range all {
			p.now = start
			p.Play(n)
			end = max(end, p.now)
		}
		p.now = end
	}
}

// Shuffle plays nemeses one after the other, in a random order.
func Shuffle(all ...Nemesis) Nemesis {
	return func(p *Plan) {
		for _, i := range p.rng.Perm(len(all)) {
			p.Play(all[i])
		}
	}
}

// Choice plays one of several nemeses.
func Choice(all ...Nemesis) Nemesis {
	return func(p *Plan) {
		if len(all) > 0 {
			p.Play(all[p.rng.IntN(len(all))])
		}
	}
}

// Maybe plays a nemesis with that chance, from 0 to 1.
func Maybe(chance float64, n Nemesis) Nemesis {
	return func(p *Plan) {
		if p.rng.Float64() < chance {
			p.Play(n)
		}
	}
}

// Repeat plays a nemesis n times. From one beginning to the next it takes as long as every says, or longer,
// if the nemesis is not over by then. Each time chance decides anew.
func Repeat(n int, every time.Duration, what Nemesis) Nemesis {
	return func(p *Plan) {
		for i := range n {
			start := p.now
			p.Play(what)
			if i+1 < n {
				p.Wait(max(every-(p.now-start), 0))
			}
		}
	}
}

// Wait does nothing for a while.
func Wait(d time.Duration) Nemesis { return func(p *Plan) { p.Wait(d) } }

// After plays a nemesis after a delay.
func After(d time.Duration, n Nemesis) Nemesis { return Sequence(Wait(d), n) }

// Within plays a nemesis after a random delay of at most d.
func Within(d time.Duration, n Nemesis) Nemesis {
	return func(p *Plan) {
		p.Wait(p.between(0, d))
		p.Play(n)
	}
}

// OnRandom plays, at the same time, what f says about each of n different random members. With n 0 chance
// also says how many. So
//
//	simulator.OnRandom(2, simulator.Crash)
//
// crashes two members.
func OnRandom(n int, f func(name string) Nemesis) Nemesis {
	return func(p *Plan) {
		var all []Nemesis
		for _, name := range p.some(n) {
			all = append(all, f(name))
		}
		p.Play(Together(all...))
	}
}

// OnGroup plays what f says about n different random members together. With n 0 chance also says how many.
func OnGroup(n int, f func(names ...string) Nemesis) Nemesis {
	return func(p *Plan) { p.Play(f(p.some(n)...)) }
}
