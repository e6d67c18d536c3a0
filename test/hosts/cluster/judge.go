//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/test/process"
)

// WaitWhole returns when each of these members, of all if none is named, is ready and takes exactly these for
// members that are up and reachable.
func (c *Cluster) WaitWhole(ctx context.Context, names ...string) error {
	if len(names) == 0 {
		for _, m := range c.Members() {
			names = append(names, m.Host.Name())
		}
	}
	return await(ctx, func() error {
		look := c.look(ctx)
		if !same(look.ready, names) {
			return fmt.Errorf("cluster: ready are %v, not all of %v: %s", look.ready, names, look.why)
		}
		for _, name := range names {
			if seen := namesOf(look.up[name]); !same(seen, names) {
				return fmt.Errorf("cluster: %s takes %v for members that are up, not %v", name, seen, names)
			}
		}
		return nil
	})
}

// ErrTwoSides is in the error of a judgement that found two members ready that are cut off from each other.
var ErrTwoSides = errors.New("TWO SIDES ARE UP")

// look is what all agents say at about the same time.
type look struct {
	ready []string            // by name
	up    map[string][]string // by name: the incarnations it takes for members that are up and reachable
	is    map[string]string   // by name: its own incarnation
	late  []string            // run, are not paused, neither ready nor newcomers that wait for others
	why   string              // of the first member that is not ready, or has ended for good
}

func (c *Cluster) look(ctx context.Context) look {
	l := look{up: make(map[string][]string), is: make(map[string]string)}
	for _, m := range c.Members() {
		name, p := m.Host.Name(), m.SBR.Process()
		if err := m.SBR.Err(); err != nil && l.why == "" {
			l.why = err.Error() // it has ended, for good
		}
		if !p.Alive() || p.Paused() {
			continue
		}
		s, err := m.Status(ctx)
		if err == nil {
			l.up[name], l.is[name] = upIn(&s), s.Incarnation
			err = m.Ready(ctx)
		}
		switch {
		case err == nil:
			l.ready = append(l.ready, name)
			continue
		case l.why == "":
			l.why = err.Error()
		}
		// A process that has just ended and is not collected yet is not late either.
		if !Waits(&s) && p.Alive() {
			l.late = append(l.late, name)
		}
	}
	return l
}

// Waits reports whether a member has started and waits for the lease or for the others still: it is neither
// up nor down.
func Waits(s *downing.Status) bool {
	return s.State == downing.StateStarting || s.State == sbr.StateArming || len(s.Awaiting) > 0
}

// calm is for how long one side must have been all that is up.
const calm = 2 * time.Second

// WaitOneSide returns the names of the ready members once they are one side, or there are none: they reach
// each other and take each other for members, and all others have ended, are paused, or are new and wait for
// others. An error is returned when ctx ends first; it says whether two sides are up.
func (c *Cluster) WaitOneSide(ctx context.Context) ([]string, error) {
	var since time.Time
	var up []string
	err := await(ctx, func() error {
		l := c.look(ctx)
		err := c.oneSide(&l)
		if err != nil || !slices.Equal(up, l.ready) {
			since, up = time.Now(), l.ready
		}
		if err != nil {
			return err
		}
		if time.Since(since) < calm {
			return errors.New("cluster: it has just changed")
		}
		return nil
	})
	return up, err
}

// TwoSides returns an error if two members are ready that are cut off from each other.
func (c *Cluster) TwoSides(ctx context.Context) error {
	l := c.look(ctx)
	return c.apart(&l)
}

// OneSide returns an error unless the ready members are one side now: see WaitOneSide.
func (c *Cluster) OneSide(ctx context.Context) error {
	l := c.look(ctx)
	return c.oneSide(&l)
}

func (c *Cluster) apart(l *look) error {
	for i, a := range l.ready {
		for _, b := range l.ready[:i] {
			if !c.lab.Connected(a, b) {
				return fmt.Errorf("cluster: %w: %s and %s are ready and cut off from each other (ready: %v)", ErrTwoSides,
					a, b, l.ready)
			}
		}
	}
	return nil
}

func (c *Cluster) oneSide(l *look) error {
	if err := c.apart(l); err != nil {
		return err
	}
	for i, a := range l.ready {
		for _, b := range l.ready[:i] {
			if !slices.Contains(l.up[a], l.is[b]) || !slices.Contains(l.up[b], l.is[a]) {
				return fmt.Errorf("cluster: %s and %s are ready and do not take each other for members (ready: %v)",
					a, b, l.ready)
			}
		}
	}
	if len(l.late) > 0 {
		return fmt.Errorf("cluster: %v are not resolved yet: %s (ready: %v)", l.late, l.why, l.ready)
	}
	return nil
}

// Down is one incarnation that was downed.
type Down struct {
	Member, Incarnation, Reason string
	// Token is the newest verdict that it knew, 0 for none.
	Token uint64
	// At is when its on-down hook ran.
	At time.Time
}

// Downs are all incarnations that were downed so far, in the order of the members and of time.
func (c *Cluster) Downs() ([]Down, error) {
	var all []Down
	for _, m := range c.Members() {
		hooks, err := m.Hooks()
		if err != nil {
			return nil, err
		}
		for _, h := range hooks {
			if h.Event == "down" {
				all = append(all, Down{Member: m.Host.Name(), Incarnation: h.Incarnation, Reason: h.Reason,
					Token: h.Token, At: h.At})
			}
		}
	}
	return all, nil
}

// Exits are the ends of `sbr agent` on a host, in order.
func (c *Cluster) Exits(name string) []process.Exit { return c.Member(name).SBR.Exits() }

// Verify checks what must hold at all times: the verdict chain, that no downed incarnation returned, and that
// each process that was downed ended with status 70, and none without being downed.
func (c *Cluster) Verify() error {
	errs := []error{c.chain.Verify()}
	downs, err := c.Downs()
	errs = append(errs, err)
	at := make(map[string]time.Time)
	count := make(map[string]int)
	for _, d := range downs {
		if first, twice := at[d.Incarnation]; twice {
			errs = append(errs, fmt.Errorf("%s was downed twice, at %s and %s", d.Incarnation, clock(first),
				clock(d.At)))
		}
		at[d.Incarnation] = d.At
		count[d.Member]++
	}
	errs = append(errs, returned(c.sampler.all(), at))
	for _, m := range c.Members() {
		exits := 0
		for _, e := range m.SBR.Exits() {
			if e.Code == downing.ExitDowned {
				exits++
			}
		}
		if name := m.Host.Name(); exits != count[name] {
			errs = append(errs, fmt.Errorf("%s: %d exits with status %d, and the on-down hook ran %d times", name,
				exits, downing.ExitDowned, count[name]))
		}
	}
	return errors.Join(errs...)
}

// Active is how long a loser worked on after the verdict that downed it.
type Active struct {
	Down
	Verdict uint64
	// For is from the write to the on-down hook; zero when that ran before.
	For time.Duration
}

// DoubleActive says for each downed incarnation that a verdict names how long it and the winners were both at
// work.
func (c *Cluster) DoubleActive() ([]Active, error) {
	downs, err := c.Downs()
	if err != nil {
		return nil, err
	}
	return doubleActive(c.chain.Verdicts(), downs), nil
}

func doubleActive(verdicts []Entry, downs []Down) (all []Active) {
	for _, d := range downs {
		for _, e := range verdicts {
			if slices.Contains(e.Verdict.Down, sbr.ID(d.Incarnation)) {
				all = append(all, Active{Down: d, Verdict: e.Token, For: max(d.At.Sub(e.Written), 0)})
				break
			}
		}
	}
	return all
}

// namesOf are the members of incarnations such as n1#l6vck4pv.
func namesOf(incarnations []string) (names []string) {
	for _, id := range incarnations {
		name, _, _ := strings.Cut(id, "#")
		names = append(names, name)
	}
	return names
}

// same reports whether two lists hold the same names, in any order.
func same(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
