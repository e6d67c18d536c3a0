package serf_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/memnet"
	"github.com/serf-sbr/serf-sbr/downing/memnet/serfnet"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// shape is a cluster that is cut in two, and how it detects that.
type shape struct {
	profile    string // serf-lan, serf-wan or serf-local
	big, small int
	probes     bool // own probes, with the settings of the configuration's defaults
}

func (s shape) String() string {
	text := fmt.Sprintf("%s %d-%d", strings.TrimPrefix(s.profile, "serf-"), s.big, s.small)
	if s.probes {
		text += " probes"
	}
	return text
}

// scenario is the shape as a file: a cut at 10 s about which no member decides.
func (s shape) scenario(t testing.TB) *scenario.Scenario {
	names := make([]string, s.big+s.small)
	for i := range names {
		names[i] = fmt.Sprintf("n%d", i+1)
	}
	probe := ""
	if !s.probes {
		probe = ", probe: {neighbours: 0}"
	}
	return parse(t, fmt.Sprintf(`
run-for: %v
cluster: {nodes: %d, detection: %s, split-brain-resolver: {stable-after: 10h, down-all-when-unstable: off%s}}
steps: [{at: 10s, partition: [[%s], [%s]]}]`, cutAt+patience, len(names), s.profile, probe,
		strings.Join(names[:s.big], ", "), strings.Join(names[s.big:], ", ")))
}

const (
	cutAt = 10 * time.Second
	// patience is how long a side may need.
	patience = 2000 * time.Second
)

// side is how long after the cut the first member across it was found to have failed by any member of a side,
// and the last one by all.
type side struct{ first, all time.Duration }

// cutTimes are what one cut showed: the larger side (of halves the first) and the smaller one.
type cutTimes [2]side

// watcher collects which node found which to have failed, and when.
type watcher struct {
	shape
	times cutTimes
	count [2]int
}

// found notes that node i, counted from 0, has found another node to have failed.
func (w *watcher) found(i int, after time.Duration) {
	of := 0
	if i >= w.big {
		of = 1
	}
	t := &w.times[of]
	if w.count[of]++; w.count[of] == 1 {
		t.first = after
	}
	t.first, t.all = min(t.first, after), max(t.all, after)
}

func (w *watcher) complete() bool {
	return w.count[0] == w.big*w.small && w.count[1] == w.big*w.small
}

// model cuts a cluster of the model.
func (s shape) model(t testing.TB, seed uint64) cutTimes {
	w, seen := watcher{shape: s}, map[string]bool{}
	for _, e := range scenario.Run(s.scenario(t), seed).Events {
		if e.Kind != "detects" {
			continue
		}
		at, err := time.ParseDuration(e.At)
		require.NoError(t, err)
		var i int
		_, err = fmt.Sscanf(e.Node, "n%d", &i)
		require.NoError(t, err)
		pair := e.Node + " " + strings.TrimSuffix(e.Detail, " failed")
		if !strings.HasSuffix(e.Detail, " failed") || seen[pair] {
			continue // a refutation from before the cut came after it: the member is condemned once more
		}
		seen[pair] = true
		w.found(i-1, at-cutAt)
	}
	require.True(t, w.complete(), "%v: seed %d: found %v of %d", s, seed, w.count, s.big*s.small)
	return w.times
}

// real cuts a cluster of real Serf nodes, at a moment that is drawn anew: nothing periodic is in step with
// it.
func (s shape) real(t *testing.T, seed uint64) cutTimes {
	if s.probes {
		return s.realProbes(t, seed)
	}
	w := watcher{shape: s}
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New(memnet.Config{Latency: time.Millisecond, Jitter: time.Millisecond, Seed: seed})
		rng := rand.New(rand.NewPCG(seed, 0xca1))
		type finding struct {
			by int
			at time.Time
		}
		findings := make(chan finding, 4*(s.big+s.small)*(s.big+s.small))
		var nodes []*serf.Serf
		var names, addrs []string
		for i := range s.big + s.small {
			name := fmt.Sprintf("n%d", i+1)
			events := make(chan serf.Event, 64)
			node, err := serfnet.Start(net, name, func(c *serf.Config) {
				c.MemberlistConfig, c.EventCh = memberlistOf(s.profile), events
			})
			require.NoError(t, err)
			go func() {
				for {
					select {
					case e := <-events:
						if m, ok := e.(serf.MemberEvent); ok && e.EventType() == serf.EventMemberFailed {
							for range m.Members {
								findings <- finding{i, time.Now()}
							}
						}
					case <-node.ShutdownCh():
						return
					}
				}
			}()
			if i > 0 {
				_, err := node.Join(addrs[:1], true)
				require.NoError(t, err)
			}
			addr, err := net.Addr(name)
			require.NoError(t, err)
			nodes, names, addrs = append(nodes, node), append(names, name), append(addrs, addr)
			time.Sleep(time.Duration(rng.Int64N(int64(300 * time.Millisecond))))
		}
		for slices.ContainsFunc(nodes,
			func(n *serf.Serf) bool { return n.Memberlist().NumMembers() != len(nodes) }) {
			time.Sleep(time.Second)
		}
		time.Sleep(time.Duration(rng.Int64N(int64(40 * time.Second))))
		cut := time.Now()
		require.NoError(t, net.Partition(names[:s.big], names[s.big:]))
		late := time.After(patience)
		for !w.complete() {
			select {
			case f := <-findings:
				w.found(f.by, f.at.Sub(cut))
			case <-late:
				require.FailNow(t, "not complete", "%v: %v", s, w.count)
			}
		}
		require.NoError(t, serfnet.ShutdownAll(nodes...))
		time.Sleep(windUp)
	})
	return w.times
}

// realProbes cuts real nodes with their providers: what counts is their word, which Serf and their own probes
// have a part in.
func (s shape) realProbes(t *testing.T, seed uint64) cutTimes {
	w := watcher{shape: s}
	file := s.scenario(t)
	file.RunFor = cutAt + 15*time.Second
	o := play(t, file, seed, func(p *player) {
		delay := p.draw(10 * time.Second)
		file.Steps[0].At.From += delay
		file.RunFor += delay
		p.heard = func(proc *process, o downing.Occurrence) {
			if o.Kind == downing.OccurredUnreachable {
				w.found(proc.index, p.now()-file.Steps[0].At.From)
			}
		}
	})
	require.NoError(t, o.err)
	require.True(t, w.complete(), "%v: found %v", s, w.count)
	return w.times
}
