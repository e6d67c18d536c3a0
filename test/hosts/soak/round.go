//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr/timing"
	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
)

const (
	// resolveWithin bounds a resolution: a holder that is gone for good is waited for until
	// heartbeat-timeout, 20 s.
	resolveWithin = 75 * time.Second
	// strandedAfter is when a member that is left alone without the store has had its time to decide.
	strandedAfter = 40 * time.Second
	// wholeWithin bounds how long a healed cluster takes to be whole: Serf tries to reconnect every 30 s.
	wholeWithin = 120 * time.Second
	// startWithin bounds how long a new cluster takes to be whole.
	startWithin = 90 * time.Second
	// watchRestarted is how long losers that were started again while the cut lasts are watched: alone they
	// would be ready after some 3 s.
	watchRestarted = 8 * time.Second
	watchEvery     = 250 * time.Millisecond
)

// outcome is how a round ended.
type outcome string

const (
	oneSide outcome = "one side"
	nobody  outcome = "nobody"
	nothing outcome = "nothing decided"
)

// result is what a round has shown.
type result struct {
	Plan    plan      `json:"plan"`
	Text    string    `json:"text"`
	Logs    string    `json:"logs"`
	Cut     time.Time `json:"cut"`
	Outcome outcome   `json:"outcome"`
	// Up are the members that were up at the end of the cut, Allowed is why none may have been. Possible is
	// how many could all reach each other, where single links were cut; zero: not known.
	Up       []string `json:"up"`
	Possible int      `json:"possible,omitempty"`
	Allowed  string   `json:"allowed,omitempty"`
	// Stranded is true when a member was left suspended, and no member could tell whether it is out.
	Stranded bool `json:"stranded,omitempty"`
	// Verdicts are the tokens that were written.
	Verdicts []uint64   `json:"verdicts"`
	Active   []activity `json:"double-active"`
	// Downs are the reasons of the members that went down.
	Downs map[string]string `json:"downs"`
	// Resolution counts from the last cut; zero if no member had to stop. Nobody is for how long none worked.
	Resolution float64 `json:"resolution-seconds"`
	Nobody     float64 `json:"nobody-active-seconds"`
	// Rejoin is from the heal until all were members, Took all of it.
	Rejoin float64 `json:"rejoin-seconds"`
	Took   float64 `json:"took-seconds"`
	// Bound is the computed bound of the double-active time of losers that are cut off from the store.
	Bound float64 `json:"bound-seconds"`
	// Busy is the share of the machine's processors that was in use.
	Busy float64 `json:"busy"`
	// Single is what became of the singleton; nil: there was none.
	Single *singleResult `json:"single,omitempty"`
	// TwoSides, BrokenChain and NotWhole say what is worst in a round that failed; not whole: after the heal,
	// or before the cut.
	TwoSides    bool `json:"two-sides,omitempty"`
	BrokenChain bool `json:"broken-chain,omitempty"`
	NotWhole    bool `json:"not-whole,omitempty"`
	// Error is why the round failed; empty: it passed.
	Error string `json:"error,omitempty"`
	// CutShort is true for a round that was not played to its end.
	CutShort bool `json:"cut-short,omitempty"`
}

func (r *result) failed() bool { return r.Error != "" && !r.CutShort }

// game is one round that is played.
type game struct {
	*stage
	plan     *plan
	bounds   timing.DoubleActive
	before   map[string]string
	start    time.Time // of the round
	cutAt    time.Time
	last     time.Time // the last cut
	healedAt time.Time
	token    uint64 // of the newest verdict before the round
	result   result
	log      marks
	holder   string // what runs in one place, or coordinates, is there when the faults come
}

// play plays a round on a stage that is whole and leaves it whole, unless the round failed.
func (s *stage) play(ctx context.Context, p *plan) result {
	r := result{Plan: *p, Text: p.String(), Logs: s.lab.Dir(), Allowed: p.nobodyAllowed(), Possible: p.possible(), Up: []string{}, Verdicts: []uint64{}, Active: []activity{}, Downs: map[string]string{}}
	g := &game{stage: s, plan: p, start: time.Now(), result: r}
	busy := readProcessors()
	err := g.run(ctx)
	g.result.Took, g.result.Busy = time.Since(g.start).Seconds(), busy.until(readProcessors())
	if err != nil {
		g.result.Error, g.result.CutShort = err.Error(), ctx.Err() != nil
		g.result.TwoSides, g.result.BrokenChain = errors.Is(err, cluster.ErrTwoSides),
			errors.Is(err, cluster.ErrBroken)
		g.result.NotWhole = errors.Is(err, errNotWhole)
	}
	return g.result
}

func (g *game) run(ctx context.Context) error {
	s := g.stage
	s.mu.Lock()
	s.stretches = nil
	s.mu.Unlock()
	var err error
	if g.before, err = g.cluster.Incarnations(ctx); err != nil {
		return err
	}
	if g.bounds, err = computedBounds(s.lab.Host(hosts[0]).File("sbr.yaml")); err != nil {
		return err
	}
	for _, e := range g.cluster.Chain().Verdicts() {
		g.token = max(g.token, e.Token)
	}
	defer s.endCrons()
	g.result.Bound = g.bounds.CutOff.Seconds()
	if g.plan.Single != nil {
		g.result.Single = &singleResult{}
		if g.plan.Single.planned() {
			return g.planned(ctx)
		}
		return g.single(ctx)
	}
	if err := s.remember(ctx, g.plan); err != nil {
		return err
	}
	if err := g.beforeTheCut(ctx); err != nil {
		return errors.Join(err, g.cluster.Chain().Verify())
	}
	resolved := g.cutAndResolve(ctx)
	if ctx.Err() != nil {
		return resolved
	}
	// Also of a cut that was not resolved it is said whether it ends with one cluster.
	if err := errors.Join(resolved, g.heal(ctx)); err != nil {
		return errors.Join(err, g.cluster.Chain().Verify())
	}
	return errors.Join(g.measure(), g.judge(ctx))
}

// verdicts are those of the round.
func (g *game) verdicts() []cluster.Entry {
	return slices.DeleteFunc(g.cluster.Chain().Verdicts(), func(e cluster.Entry) bool {
		return e.Token <= g.token
	})
}

// errNotWhole is in the error of a round in which not all five are members when they should be.
var errNotWhole = errors.New("NOT ALL ARE MEMBERS")

// cutAndResolve plays what happens up to the heal.
func (g *game) cutAndResolve(ctx context.Context) error {
	if err := g.trouble(ctx); err != nil {
		return fmt.Errorf("playing the faults: %w", err)
	}
	up, err := g.resolve(ctx)
	if err != nil {
		return err
	}
	if g.plan.Single != nil {
		if err := g.runsAgain(ctx, up); err != nil {
			return err
		}
	}
	if err := g.whileCut(ctx, &up); err != nil {
		return err
	}
	g.result.Up = append([]string{}, up...)
	return nil
}

// trouble makes the cut and the faults, and returns when the last of them has come; a shape that makes no
// sides is healed then.
func (g *game) trouble(ctx context.Context) error {
	p := g.plan
	var running tasks
	flapCtx, stopFlapping := context.WithCancel(ctx)
	defer stopFlapping()
	flapped := make(chan struct{})
	g.cutAt = time.Now()
	g.last = g.cutAt
	if p.Shape == flapping {
		running.start(func() error { defer close(flapped); return g.flap(flapCtx, p) })
	} else {
		close(flapped)
		if err := g.cut(p); err != nil {
			return err
		}
	}
	for i := range p.Faults {
		f := &p.Faults[i]
		if f.When == afterVerdict {
			running.start(func() error {
				if !g.verdictCame(ctx) || !slept(ctx, time.Duration(f.At)) {
					return nil
				}
				return g.strike(ctx, f)
			})
		}
		if f.When != "" {
			continue
		}
		if !g.sleepUntil(ctx, f.At) {
			break
		}
		switch f.Kind {
		case healEarly:
			stopFlapping()
			<-flapped
		case secondCut:
			if p.sharper() {
				g.last = time.Now()
			}
		}
		running.start(func() error { // a slow fault must not hold up the next
			if err := g.strike(ctx, f); err != nil {
				return fmt.Errorf("%v: %w", f, err)
			}
			return nil
		})
	}
	if p.Lasts > 0 && p.has(healEarly) == nil {
		g.sleepUntil(ctx, p.Lasts)
		stopFlapping()
		<-flapped
		g.end(lossy, hosts...)
		if err := g.lab.HealLinks(); err != nil {
			return err
		}
	}
	stopFlapping()
	return errors.Join(running.wait(), ctx.Err())
}

// tasks run beside each other; wait returns all their errors.
type tasks struct {
	running sync.WaitGroup
	mu      sync.Mutex
	errs    []error
}

func (t *tasks) start(do func() error) {
	t.running.Go(func() {
		err := do()
		t.mu.Lock()
		defer t.mu.Unlock()
		t.errs = append(t.errs, err)
	})
}

func (t *tasks) wait() error {
	t.running.Wait()
	return errors.Join(t.errs...)
}

// sleepUntil waits for a time of the plan; false: ctx has ended.
func (g *game) sleepUntil(ctx context.Context, at span) bool {
	return slept(ctx, time.Until(g.cutAt.Add(time.Duration(at))))
}

// resolve returns the members that are up once they are one side, or none is up.
func (g *game) resolve(ctx context.Context) ([]string, error) {
	if err := g.noticed(ctx); err != nil {
		return nil, err
	}
	up, err := g.waitOneSide(ctx, strandedAfter)
	if err == nil || ctx.Err() != nil {
		return up, err
	}
	if g.stranded(ctx) {
		g.result.Stranded = true
		return nil, nil
	}
	return g.waitOneSide(ctx, resolveWithin-strandedAfter)
}

// stranded reports whether no member is ready and each that is left has to wait for others, suspended. Cut
// off from the store, and alone after the others have gone, a member cannot learn whether it is out: it waits
// until the store answers, or for suspend-timeout. A member that was killed and started again during the cut
// is not armed, and waits for min-members.
func (g *game) stranded(ctx context.Context) bool {
	troubles := g.troubles()
	for _, m := range g.cluster.Members() {
		if p := m.SBR.Process(); !p.Alive() || p.Paused() {
			continue
		}
		waits := g.plan.restartedIn(m.Host.Name()) || slices.ContainsFunc(troubles, func(s stretch) bool {
			return s.Host == m.Host.Name() && s.Trouble == noStore && s.To.IsZero()
		})
		if !waits || m.Ready(ctx) == nil {
			return false
		}
	}
	return true
}

func (g *game) waitOneSide(ctx context.Context, within time.Duration) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return g.cluster.WaitOneSide(ctx)
}

// whileCut plays what comes between the resolution and the heal. Members that are up stay up.
func (g *game) whileCut(ctx context.Context, up *[]string) error {
	stood := g.plan.hit(pause)
	again := func(what string) error {
		now, err := g.waitOneSide(ctx, resolveWithin)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if gone := without(*up, now); len(gone) > 0 {
			return fmt.Errorf("%s: %v ceased to be up", what, gone)
		}
		*up = now
		return nil
	}
	if len(stood) > 0 && g.plan.ContinueEarly {
		if err := g.wake(); err != nil {
			return err
		}
		if err := again("once it was continued"); err != nil {
			return err
		}
	}
	if losers := without(hosts, slices.Concat(*up, stood)); g.plan.RestartEarly && len(losers) > 0 {
		before := *up
		defer func() { *up = before }() // members that start now do not belong to the outcome
		g.setRestart(true, losers...)
		if err := g.keptOut(ctx, losers, *up); err != nil {
			return err
		}
		return again("once losers were started again")
	}
	return nil
}

// keptOut watches losers that were started again: as long as they are cut off from the members that are up
// they must not be ready, however many they are.
func (g *game) keptOut(ctx context.Context, losers, up []string) error {
	for end := time.Now().Add(watchRestarted); time.Now().Before(end); {
		for _, name := range losers {
			near := slices.ContainsFunc(up, func(winner string) bool { return g.lab.Connected(name, winner) })
			if len(up) > 0 && !near && g.cluster.Member(name).Ready(ctx) == nil {
				return fmt.Errorf("%w: %s was started again and is ready, cut off from %v, who won",
					cluster.ErrTwoSides, name, up)
			}
		}
		if !slept(ctx, watchEvery) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// heal ends everything and waits until all five are members.
func (g *game) heal(ctx context.Context) error {
	healed := time.Now()
	g.healedAt = healed
	g.end(noStore, hosts...)
	g.end(lossy, hosts...)
	if err := g.lab.Heal(); err != nil {
		return err
	}
	if err := g.wake(); err != nil {
		return err
	}
	g.setRestart(true, hosts...)
	for _, name := range g.plan.hit(crash) {
		g.cluster.Restore(name)
	}
	defer g.setRestart(false, hosts...)
	within, cancel := context.WithTimeout(ctx, wholeWithin)
	defer cancel()
	if err := g.cluster.WaitWhole(within); err != nil {
		return fmt.Errorf("after the heal: %w: %w", errNotWhole, err)
	}
	g.result.Rejoin = time.Since(healed).Seconds()
	return nil
}

func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(x string) bool { return slices.Contains(some, x) })
}
