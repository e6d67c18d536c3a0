//go:build linux

package main

import (
	"cmp"
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
	// Of shards only.
	byDesertion cause = "hosts leave with their shards"
	byBalance   cause = "for the sake of balance"
)

// causes are in the order of the tables.
var causes = []cause{
	byHandOver, byRolling, cause(leaveScene), byDesertion, byBalance, byCut, cause(crashScene),
	cause(stillScene), cause(killScene), cause(agentScene), cause(runScene), cause(programScene), byOther,
	byMore, byHeal,
}

// move is a change of owner. Times are in seconds.
type move struct {
	Cause cause  `json:"cause"`
	From  string `json:"from"`
	To    string `json:"to"`
	// Gap is the time without work. Since is that from the fault to the first work, and Bound what it should
	// be at most; zero where nothing is computed.
	Gap   float64 `json:"gap"`
	Since float64 `json:"since-fault,omitempty"`
	Bound float64 `json:"bound,omitempty"`
	// Beyond is what of Since came after the verdict and the removal margin, which nobody can do without.
	// Zero with a lease, and where nothing is computed.
	Beyond float64 `json:"beyond-margin,omitempty"`
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
	in, _ := f.Times(len(hosts), "")
	bound := boundOf(in, f.Margin(), s.kind.guard)
	if s.kind.shards > 0 && s.kind.guard == cluster.ByBoth {
		// first the coordinator's, then that of the shard
		bound += f.Lease.Settings(config.ImplementationKubernetes).HeartbeatTimeout
	}
	return bound, nil
}

// boundOf adds up detection, stable-after, the removal margin, and with a lease what may be left of its time:
// the next one counts that from when it has seen the last heartbeat.
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
	lines, err := g.written()
	if err != nil {
		return err
	}
	bound, err := g.singleBound()
	if err != nil {
		return err
	}
	r := g.result.Single
	whole := ledger.Analyse(lines)
	errs := disorder(&whole, g.log.begin)
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
	r.Moves = movesOf(whole.Changes, g.plan, g.log, g.fate(), bound)
	if err := g.beyond(r.Moves); err != nil {
		return err
	}
	calm := g.plan.Single.planned() ||
		g.kind.shards > 0 && g.plan.has(pause) == nil && len(g.plan.Single.NoLedger) == 0
	if calm && r.Overlaps > 0 {
		const text = "two runs wrote at once, %d times, the longest for %v, and nothing had stood still"
		errs = append(errs, fmt.Errorf(text, r.Overlaps, r.Overlap.Max))
	}
	if s := g.plan.Single.Scene; (s == rollingScene || s == leaveScene || g.plan.Single.planned()) &&
		len(g.result.Downs) > 0 {
		errs = append(errs, fmt.Errorf("%s: it has downed %v", s, g.result.Downs))
	}
	return errors.Join(errs...)
}

// disorder is what no fence may let through, later than after, and what no fence can tell apart.
func disorder(r *ledger.Report, after time.Duration) (errs []error) {
	late := slices.DeleteFunc(r.Violations, func(v ledger.Violation) bool { return v.At <= after })
	if len(late) > 0 {
		v := late[0]
		errs = append(errs, fmt.Errorf("AN OLDER TOKEN AFTER A NEWER ONE, %d times: %s: %d of %s after %d was accepted at %v", len(late), v.Resource, v.Token, v.Member, v.Newest, v.At))
	}
	for _, s := range r.Shared {
		errs = append(errs, fmt.Errorf("%s: token %d was had by %v", s.Resource, s.Token, s.Members))
	}
	return errs
}

// beyond tells what of the time from a fault to the first work was neither detection nor one of the waits
// that are set.
func (g *game) beyond(moves []move) error {
	f, err := config.Load(g.lab.Host(hosts[0]).File("sbr.yaml"))
	if err != nil || g.kind.guard != cluster.ByMembers {
		return err
	}
	for _, e := range g.cluster.Chain().Verdicts() {
		if e.Token <= g.token || e.Written.IsZero() {
			continue
		}
		afterMargin(moves, e.Written.Sub(g.cutAt)+f.Margin())
		break // the first downs the member that the fault has hit
	}
	return nil
}

// afterMargin fills in what came after the margin was over, so long after the fault.
func afterMargin(moves []move, over time.Duration) {
	for i := range moves {
		if m := &moves[i]; m.Bound > 0 {
			m.Beyond = max(m.Since-over.Seconds(), 0)
		}
	}
}

// written is all that was written to the ledger of a stage, in order of time.
func (s *stage) written() ([]ledger.Line, error) {
	var lines []ledger.Line
	for _, resource := range s.load.resources() {
		own, err := s.ledger.Lines(resource)
		if err != nil {
			return nil, err
		}
		lines = append(lines, own...)
	}
	slices.SortFunc(lines, func(a, b ledger.Line) int { return cmp.Compare(a.At, b.At) })
	return lines, nil
}

// fate are the hosts and incarnations that were hit in a round.
type fate struct {
	struck []string          // hosts
	downed map[string]string // incarnations, with the reasons
}

// fate is that of the round.
func (g *game) fate() fate {
	if g.plan.Single.Scene == cutScene {
		return fate{without(hosts, g.result.Up), g.result.Downs}
	}
	return fate{g.plan.hurt(), g.result.Downs}
}

// hurt are the hosts on which something happens to all that runs there.
func (p *plan) hurt() (all []string) {
	for _, k := range []kind{pause, crash, kill, departure, desertion} {
		all = append(all, p.hit(k)...)
	}
	return all
}

// movesOf tells the changes of a round apart: by when they were, and those of shards also by whether the old
// run had said that it stops, and whether its host or its incarnation was hit. What is handed over when all
// is well is balance, of shards.
func movesOf(changes []ledger.Change, p *plan, log marks, hit fate, bound time.Duration) (all []move) {
	seen := make(map[string]bool)
	shards := p.Single.Shards > 0
	for _, c := range changes {
		m := move{From: hostOf(c.From), To: hostOf(c.To), Gap: c.Gap.Seconds()}
		began, other := c.At, c.From == c.To
		if shards { // the times are those of the runs
			began, other = c.Began, !slices.Contains(hit.struck, m.From)
			m.Gap = (c.Began - c.Ended).Seconds()
		}
		_, downed := hit.downed[c.From]
		switch {
		case c.At <= log.begin:
			continue
		case log.ready == 0 || c.At <= log.ready: // of the round before
			m.Cause = afterwards(shards && c.Planned)
		case log.cut == 0 || c.At <= log.cut:
			m.Cause = byHandOver
		case log.healed != 0 && c.At > log.healed && (shards || p.Shape != whole): // else there was nothing to heal
			m.Cause = afterwards(shards && c.Planned && c.Ended > log.healed && !downed)
		case p.alone() && other:
			m.Cause = byOther
			seen[c.Resource] = seen[c.Resource] || !shards
		default:
			m.Cause = p.cause()
			if p.alone() && p.Single.Scene != leaveScene && !seen[c.Resource] {
				m.Since, m.Bound = (began - log.cut).Seconds(), bound.Seconds()
			}
			seen[c.Resource] = true
		}
		all = append(all, m)
	}
	return all
}

// afterwards is the cause of what moves when everything is well again.
func afterwards(handedOver bool) cause {
	if handedOver {
		return byBalance
	}
	return byHeal
}

// cause is that of what moves during the cut.
func (p *plan) cause() cause {
	switch {
	case p.has(desertion) != nil || p.Single.Shards > 0 && p.Single.Scene == rollingScene && !p.Single.InPeace:
		return byDesertion
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
	lines, err := st.written()
	if err != nil {
		fmt.Fprintf(os.Stderr, "soak: %v\n", err)
		return
	}
	r := ledger.Analyse(lines)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledgers = append(s.ledgers, r)
}
