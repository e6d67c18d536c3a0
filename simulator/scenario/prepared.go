package scenario

import "github.com/serf-sbr/serf-sbr/simulator/internal/world"

// Prepared is a scenario that was checked, and worked out as far as that does not depend on the seed: for who plays it more than once.
// The scenario must not be changed any more. Any number of goroutines may play it at the same time.
type Prepared struct {
	s       *Scenario
	options world.Options
	names   *names
}

// Prepare fails with every problem of the scenario, one line each, when it does not validate.
func Prepare(s *Scenario) (*Prepared, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	o, err := s.options()
	if err != nil {
		return nil, err
	}
	return &Prepared{s: s, options: o, names: s.names()}, nil
}

// Run is the function Run for this scenario.
func (ready *Prepared) Run(seed uint64) Result {
	r, w := ready.play(seed, func(o *world.Options) { o.Trace = true })
	if w != nil {
		r.Events = append(ready.s.draws(seed), events(w)...)
	}
	return r
}

// Judge is the function Judge for this scenario.
func (ready *Prepared) Judge(seed uint64) Result {
	r, _ := ready.play(seed, func(*world.Options) {})
	return r
}

// Measure is the function Measure for this scenario.
func (ready *Prepared) Measure(seed uint64) Measures {
	r, w := ready.play(seed, func(o *world.Options) { o.Measure = true })
	if w == nil {
		return Measures{}
	}
	a := w.Activity()
	m := Measures{
		Passed: r.Passed, BothSides: a.BothSides, Nobody: len(r.Survivors) == 0,
		DoubleActive: a.DoubleActive, NobodyActive: a.NobodyActive,
	}
	m.Resolved, m.Settled = ready.s.Drawn(seed).resolved(w)
	return m
}

// play plays one run under options that observe sets.
func (ready *Prepared) play(seed uint64, observe func(*world.Options)) (Result, *world.World) {
	r := empty(ready.s, seed)
	played, err := ready.player(seed, observe)
	if err != nil {
		return refused(r, err), nil
	}
	s, w := played.s, played.w
	r.Survivors = append(r.Survivors, w.Survivors()...)
	r.Down = append(r.Down, w.Down()...)
	r.LeaseHolder = w.Holder()
	r.Singletons, r.Shards = singletonResults(w.Slots()), shardsResults(w.Shards())
	after, resolved := s.resolved(w)
	if resolved {
		r.ResolvedAfter = after.String()
	}
	r.Failures = append(r.Failures, broken(w.FinishSafety())...)
	r.Failures = append(r.Failures, s.unmet(&r, played, after, resolved)...)
	r.Excepted = broken(w.Excepted())
	r.Passed = len(r.Failures) == 0
	r.TraceHash = w.Hash()
	return r, w
}
