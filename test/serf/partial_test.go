package serf_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/partial"
	"github.com/serf-sbr/serf-sbr/internal/race"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Of a cut that is not clean nearly all stay up over real Serf that can all reach each other, and never two
// that cannot. SBR_PARTIAL=N plays N seeds of each shape, with up to 20 members; -v shows the table, beside
// it indirectly-connected: down.
func TestPartialCuts_NearlyAllStayThatCan(t *testing.T) {
	if testing.Short() || race.Enabled {
		t.Skip("plays dozens of clusters of real Serf")
	}
	sizes, seeds := []int{5}, 1
	if _, err := fmt.Sscan(os.Getenv("SBR_PARTIAL"), &seeds); err == nil {
		sizes = []int{5, 9, 20}
	}
	var up, possible int
	for _, n := range sizes {
		for shape := range partial.Shapes {
			kept, of, nobody := playPartial(t, shape, n, seeds, "keep-largest-group")
			require.Zero(t, nobody, "%s of %d", partial.Shapes[shape].Name, n)
			before := ""
			if len(sizes) > 1 {
				some, _, none := playPartial(t, shape, n, seeds, "down")
				before = fmt.Sprintf("; with down: %3d, nobody in %d", some, none)
			}
			t.Logf("%3d members  %-10s %3d of %3d up, nobody in %d%s",
				n, partial.Shapes[shape].Name, kept, of, nobody, before)
			up, possible = up+kept, possible+of
		}
	}
	require.GreaterOrEqual(t, float64(up), 0.97*float64(possible), "%d of %d", up, possible)
}

func playPartial(t *testing.T, shape, n, seeds int, rule string) (up, possible, nobody int) {
	t.Helper()
	for seed := uint64(1); seed <= uint64(seeds); seed++ {
		text, can := partial.File(shape, n, seed, rule)
		o := play(t, parse(t, text), seed)
		require.NoError(t, o.err)
		if rule != "down" {
			require.Empty(t, o.broken, "%s of %d, seed %d", partial.Shapes[shape].Name, n, seed)
		}
		up, possible = up+len(o.Survivors), possible+can
		if len(o.Survivors) == 0 {
			nobody++
		}
	}
	return up, possible, nobody
}

// What does not get better is dealt with once: a link that stays broken, and a member that loses 30 % of what
// it receives. After ten minutes no verdict is written any more, nobody is downed, and nobody is suspended:
// also where the downed member is started again behind its broken link, and waits. SBR_HOUR=1 plays an hour,
// with 5, 50 and 100 members; -v shows what it cost.
func TestHour_NothingGrows(t *testing.T) {
	if testing.Short() || race.Enabled {
		t.Skip("plays minutes of clusters of real Serf")
	}
	sizes, runFor := []int{5}, 12*time.Minute
	if os.Getenv("SBR_HOUR") != "" {
		sizes, runFor = []int{5, 50, 100}, time.Hour
	}
	for _, n := range sizes {
		for _, tc := range []struct {
			name, step string
			restarts   bool
		}{
			{"a broken link", "cut: [n2, n4]", false},
			{"a broken link, restarts", "cut: [n2, n4]", true},
			{"30 % loss at one member", "link-one-way: [all, n4], loss: 0.3", true},
		} {
			t.Run(fmt.Sprint(tc.name, " of ", n), func(t *testing.T) {
				var nodes []string
				for i := range n {
					zone := ", zone: all"
					if i == 3 {
						zone = ""
					}
					nodes = append(nodes, fmt.Sprintf("{name: n%d%s}", i+1, zone))
				}
				file := fmt.Sprintf("run-for: %v\ncluster: {nodes: [%s]}\nsteps: [{at: 10s, %s}]",
					runFor, strings.Join(nodes, ", "), tc.step)
				early, late := playHour(t, file, tc.restarts)
				t.Logf("%d members, %s: within ten minutes %v; after them, until %v: %v", n, tc.name, early, runFor, late)
				require.Zero(t, late.verdicts)
				require.Zero(t, late.downs)
				if tc.step[:3] == "cut" {
					require.Zero(t, late.suspended)
				}
			})
		}
	}
}

// hour is what a time has cost.
type hour struct {
	verdicts  uint64
	downs     int
	suspended time.Duration // of all members together, without those that take no part yet
}

func (h hour) String() string {
	return fmt.Sprintf("%d verdicts, %d members downed, %.0f member-seconds suspended",
		h.verdicts, h.downs, h.suspended.Seconds())
}

// playHour plays a file, and returns what its first ten minutes have cost, and the rest. With restarts every
// downed member is started again.
func playHour(t *testing.T, file string, restarts bool) (early, late hour) {
	t.Helper()
	const every = time.Second
	var all hour
	counted := make(map[*process]bool)
	o := play(t, parse(t, file), 1, func(p *player) {
		var look func() error
		look = func() error {
			for _, n := range p.nodes {
				switch proc := n.proc; {
				case proc.wasDowned():
					if !counted[proc] {
						all.downs++
					}
					if counted[proc] = true; restarts {
						p.crash(n)
						p.boot(n)
					}
				case proc.up() && proc.shown.state != sbr.StateUp &&
					!proc.provider.Status().Newcomer: // sample shows arming as up
					all.suspended += every
				}
			}
			all.verdicts = p.store.Snapshot().Record.Token
			if p.now() <= 10*time.Minute {
				early = all
			}
			p.after(every, look)
			return nil
		}
		p.after(every, look)
	})
	require.NoError(t, o.err)
	if o.Measures.Settled { // otherwise some are about to be decided about
		require.Empty(t, o.broken)
	}
	return early, hour{all.verdicts - early.verdicts, all.downs - early.downs, all.suspended - early.suspended}
}
