package world

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/cores"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

var (
	firstSeed = flag.Uint64("first", 1, "the first seed of the random exploration")
	seedCount = flag.Uint64("seeds", 0, "how many seeds to explore (0: as many as fit into a normal test run)")
	keepGoing = flag.Bool("keep-going", false, "report every failing seed, not only the first few")
)

// explore runs the plans of many seeds on all cores and reports the first failures with their traces.
func explore(t *testing.T, count uint64, make func(seed uint64) plan) {
	t.Helper()
	if *seedCount > 0 {
		count = *seedCount
	} else if testing.Short() {
		count /= 10
	}
	failures := 0
	for p := range cores.InOrder(count, func(i uint64) (p played) {
		p.seed = *firstSeed + i
		p.bad = violationsOf(make(p.seed), false)
		return p
	}) {
		if len(p.bad) == 0 {
			continue
		}
		if failures++; *keepGoing {
			fmt.Printf("%s: seed %d: %v\n", t.Name(), p.seed, p.bad[0])
		} else if report(t, make(p.seed)); failures >= 3 {
			break
		}
	}
	t.Logf("%d seeds, %d failures", count, failures)
	require.Zero(t, failures,
		"replay one with: go test ./simulator/internal/world -run '%s$' -first SEED -seeds 1", t.Name())
}

type played struct {
	seed uint64
	bad  []Violation
}

func violationsOf(p plan, trace bool) []Violation {
	w := play(p, trace)
	return judge(p, w)
}

func judge(p plan, w *World) []Violation {
	if p.alone {
		return w.Violations()
	}
	return append(w.Finish(), exactlyOneSide(p, w)...)
}

func play(p plan, trace bool) *World {
	p.options.Trace = trace
	w, err := New(p.options)
	if err != nil {
		panic(err)
	}
	p.play(w)
	w.Run(p.end)
	return w
}

func report(t *testing.T, p plan) {
	w := play(p, true)
	bad := judge(p, w)
	t.Logf("%s\n%s%v", p.String(), w.Story(), bad)
	t.Errorf("seed %d: %v", p.seed, bad[0])
}

// exactlyOneSide is promise L1.
func exactlyOneSide(p plan, w *World) []Violation {
	if !p.live {
		return nil
	}
	up := make(map[string]bool)
	for _, name := range w.Survivors() {
		up[name] = true
	}
	if len(up) == 0 {
		return []Violation{{At: w.Now(), Promise: "L1", Text: "nobody is up"}}
	}
	for _, g := range p.groups {
		for _, i := range g {
			if !up[w.Nodes()[i].Name] {
				continue
			}
			for _, j := range g {
				if p.perfect[j] && !up[w.Nodes()[j].Name] {
					return []Violation{{At: w.Now(), Promise: "L1",
						Text: fmt.Sprintf("%s is on the winning side, reaches the store, and is down", w.Nodes()[j].Name)}}
				}
			}
		}
	}
	return nil
}

func TestRandom_SafetyUnderAnyFault(t *testing.T) { explore(t, 4000, randomPlan) }

func TestRandom_ExactlyOneSideSurvives(t *testing.T) { explore(t, 4000, livePlan) }

// Without a lease nobody promises that one side survives, but every run must come to an end and be explained.
func TestRandom_OtherStrategies(t *testing.T) {
	other := []sbr.Strategy{
		strategies.KeepMajority{}, strategies.KeepOldest{DownIfAlone: true}, strategies.StaticQuorum{QuorumSize: 2},
		strategies.DownAll{},
		strategies.KeepReferee{Address: "10.0.0.1:7946", DownAllIfLessThanNodes: 1},
	}
	explore(t, 1000, func(seed uint64) plan {
		p := randomPlan(seed)
		p.options.Strategy = other[seed%uint64(len(other))]
		p.alone = true
		return p
	})
}

func TestRandom_SameSeedSameRun(t *testing.T) {
	for seed := range uint64(50) {
		a, b := play(randomPlan(seed), false), play(randomPlan(seed), true)
		require.Equal(t, a.Hash(), b.Hash(), "seed %d", seed)
	}
}

func BenchmarkRandomRun(b *testing.B) {
	var virtual time.Duration
	for seed := uint64(1); b.Loop(); seed++ {
		virtual += play(randomPlan(seed), false).Now()
	}
	b.ReportMetric(virtual.Seconds()/b.Elapsed().Seconds(), "virtual-s/s")
}
