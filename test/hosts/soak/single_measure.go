//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/internal/ledger"
	"github.com/serf-sbr/serf-sbr/sbr/timing"
	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
)

// cause is why the singleton has moved, or run anew.
type cause string

const (
	byHandOver cause = "planned hand-over"
	byRolling  cause = "rolling update"
	byCut      cause = "clean cut, nothing else"
	byMore     cause = "cut, and more"
	byOther    cause = "a fault on other hosts only"
	byHeal     cause = "after everything is healed"
)

// causes are in the order of the tables.
var causes = []cause{
	byHandOver, byRolling, byCut, cause(crashScene), cause(stillScene), cause(agentScene), cause(runScene), cause(programScene), byOther, byMore, byHeal,
}

// move is a change of owner. Times are in seconds.
type move struct {
	Cause cause  `json:"cause"`
	From  string `json:"from"`
	To    string `json:"to"`
	// Gap is the time without work. Since is that from the fault to the first work, and Bound what it should be at most; zero where nothing is computed.
	Gap   float64 `json:"gap"`
	Since float64 `json:"since-fault,omitempty"`
	Bound float64 `json:"bound,omitempty"`
}

// singleResult is what a round has shown of a singleton.
type singleResult struct {
	Moves []move `json:"moves"`
	// Overlap is what would have been double work without the fence. Overlaps counts them.
	Overlaps int        `json:"overlaps"`
	Overlap  ledger.Sum `json:"overlap"`
	// Refused are the attempts that the fence refused.
	Refused int `json:"refused"`
}

// String is all of it on one line.
func (r *singleResult) String() string {
	var moves []string
	for _, m := range r.Moves {
		moves = append(moves, fmt.Sprintf("%s>%s %s (%s)", m.From, m.To, short(m.Gap), m.Cause))
	}
	text := "moves: " + strings.Join(moves, ", ")
	if r.Overlaps > 0 {
		text += fmt.Sprintf("; %d overlaps, the longest %s", r.Overlaps, short(r.Overlap.Max.Seconds()))
	}
	if r.Refused > 0 {
		text += fmt.Sprintf("; %d writes refused", r.Refused)
	}
	return text
}

// handOverTime is what a hand-over adds to the times that are computed.
const handOverTime = 200 * time.Millisecond

// singleBound is the longest from a fault at one instant to the first work elsewhere.
func (s *stage) singleBound() (time.Duration, error) {
	f, err := config.Load(s.lab.Host(hosts[0]).File("sbr.yaml"))
	if err != nil {
		return 0, err
	}
	return boundOf(f.Timing(len(hosts), f.Gossip()), f.Margin(), s.kind.guard), nil
}

// boundOf adds up detection, stable-after, the removal margin, and with a lease what may be left of its time: the next one counts that from when it has
// seen the last heartbeat.
func boundOf(in timing.Input, margin time.Duration, g cluster.Guard) time.Duration {
	d := timing.Compute(in).Detection
	bound := max(d.Majority.Worst, d.Lone.Worst) + in.StableAfter + margin + handOverTime
	if g == cluster.ByBoth {
		bound += in.HeartbeatTimeout
	}
	return bound
}

// account fills in what the ledger says of the round, and judges it.
func (g *game) account(context.Context) error {
	lines, err := g.ledger.Lines(resource)
	if err != nil {
		return err
	}
	bound, err := g.singleBound()
	if err != nil {
		return err
	}
	r := g.result.Single
	var errs []error
	whole := ledger.Analyse(lines)
	late := slices.DeleteFunc(whole.Violations, func(v ledger.Violation) bool { return v.At <= g.log.begin })
	if len(late) > 0 {
		v := late[0]
		errs = append(errs, fmt.Errorf("AN OLDER TOKEN AFTER A NEWER ONE, %d times: %d of %s after %d was accepted at %v", len(late), v.Token, v.Member, v.Newest, v.At))
	}
	for _, s := range whole.Shared {
		errs = append(errs, fmt.Errorf("token %d was had by %v", s.Token, s.Members))
	}
	for _, o := range whole.Overlaps {
		if o.From > g.log.begin {
			r.Overlaps++
			r.Overlap.Total += o.To - o.From
			r.Overlap.Max = max(r.Overlap.Max, o.To-o.From)
			r.Overlap.Refused += o.Refused
		}
	}
	for _, l := range lines {
		if l.At > g.log.begin && !l.Accepted {
			r.Refused++
		}
	}
	r.Moves = movesOf(whole.Changes, g.plan, g.log, bound)
	if g.plan.Single.Scene == rollingScene && len(g.result.Downs) > 0 {
		errs = append(errs, fmt.Errorf("a rolling update has downed %v", g.result.Downs))
	}
	return errors.Join(errs...)
}

// movesOf tells the changes of a round apart by when they were.
func movesOf(changes []ledger.Change, p *plan, log marks, bound time.Duration) (all []move) {
	first := true
	for _, c := range changes {
		m := move{From: c.From, To: c.To, Gap: c.Gap.Seconds()}
		switch {
		case c.At <= log.begin:
			continue
		case log.ready == 0 || c.At <= log.ready:
			m.Cause = byHeal // of the round before
		case log.cut == 0 || c.At <= log.cut:
			m.Cause = byHandOver
		case log.healed != 0 && c.At > log.healed && p.Shape != whole: // otherwise there was nothing to heal
			m.Cause = byHeal
		default:
			m.Cause = p.cause()
			if p.alone() && c.From == c.To {
				m.Cause = byOther
			} else if first && p.alone() {
				m.Since, m.Bound = (c.At - log.cut).Seconds(), bound.Seconds()
			}
			first = false
		}
		all = append(all, m)
	}
	return all
}

// cause is that of what moves during the cut.
func (p *plan) cause() cause {
	switch {
	case p.Single.Scene == rollingScene:
		return byRolling
	case p.Single.Scene != cutScene:
		return cause(p.Single.Scene)
	case p.alone():
		return byCut
	default:
		return byMore
	}
}

// settle takes in what the ledger of a stage says, before that is closed.
func (s *soak) settle(st *stage) {
	if st.ledger == nil {
		return
	}
	lines, err := st.ledger.Lines(resource)
	if err != nil {
		fmt.Fprintf(os.Stderr, "soak: %v\n", err)
		return
	}
	r := ledger.Analyse(lines)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledgers = append(s.ledgers, r)
}
