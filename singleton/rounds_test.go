package singleton_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/internal/ledger"
	"github.com/serf-sbr/serf-sbr/lease/memory"
	"github.com/serf-sbr/serf-sbr/singleton"
)

// gate lets a whole member stand still: its resolver, its manager, its work, its packets.
type gate struct {
	mu   sync.Mutex
	shut chan struct{}
}

func (g *gate) pass() {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut != nil {
		<-shut
	}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil {
		g.shut = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		close(g.shut)
		g.shut = nil
	}
}

// direct calls a handler without a network in between.
type direct struct{ handler http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// round is one cluster to which things happen, and the resource that its singleton writes to.
type round struct {
	*crew
	rng    *rand.Rand
	store  *memory.Store
	client ledger.Client
	gates  map[string]*gate
	paused map[string]bool
	log    []string
}

func (r *round) say(format string, args ...any) { r.log = append(r.log, fmt.Sprintf(format, args...)) }

// work writes to the resource every 20 ms. It looks at its context, and may then be paused for any time before it writes: that is what a fence is for.
func (r *round) work(name string) func(context.Context, *singleton.Run) error {
	return func(ctx context.Context, run *singleton.Run) error {
		e := ledger.Entry{Resource: "backup", Member: name, Run: strconv.FormatUint(run.Token(), 10), Kind: ledger.Start}
		write := func() {
			e.Seq++
			_ = r.client.Append(context.WithoutCancel(ctx), run.Token(), e) // the file says what became of it
		}
		write()
		e.Kind = ledger.Work
		for run.Check() == nil {
			r.gates[name].pass()
			write()
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
		r.gates[name].pass()
		e.Kind = ledger.Stop
		write()
		return nil
	}
}

// attending are the members that are neither down nor paused.
func (r *round) attending() (names []string) {
	for name := range r.managers {
		if !r.Member(name).Down() && !r.paused[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// holder is who runs the singleton.
func (r *round) holder() string {
	for _, name := range r.attending() {
		if r.managers[name].Status().Token != 0 {
			return name
		}
	}
	return ""
}

// happen lets one thing happen, and waits until the cluster has dealt with it.
func (r *round) happen() {
	names := r.attending()
	victim := names[r.rng.IntN(len(names))]
	if h := r.holder(); h != "" && r.rng.IntN(2) == 0 {
		victim = h
	}
	switch what := r.rng.IntN(6); {
	case what == 0 && len(names) > 2:
		cut := 1 + r.rng.IntN(len(names)-1)
		r.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		r.say("partition %v | %v", names[:cut], names[cut:])
		one := slices.Clone(names[:cut])
		for name := range r.paused {
			one = append(one, name) // crashed: it makes no difference
		}
		require.NoError(r.t, r.Net.Partition(one, names[cut:]))
		time.Sleep(time.Duration(r.rng.IntN(40)) * time.Second)
		r.Net.Heal()
		r.say("heal")
	case what <= 2:
		for_ := time.Duration(1+r.rng.IntN(60)) * time.Second
		r.say("pause %s for %v", victim, for_)
		r.pause(victim)
		time.Sleep(for_)
		r.resume(victim)
	case what == 3 && len(names) > 3:
		r.say("crash %s", victim)
		r.pause(victim) // for good
	case what == 4:
		r.say("rolling update of %v", names)
		for _, name := range slices.Backward(names) {
			r.restart(name)
		}
	default:
		r.say("no store for %s", victim)
		r.store.View(victim).SetUnavailable(true)
		time.Sleep(time.Duration(r.rng.IntN(30)) * time.Second)
		r.store.View(victim).Heal()
	}
	r.settle()
}

func (r *round) pause(name string) {
	r.paused[name] = true
	r.gates[name].close()
	r.Member(name).Store.SetUnavailable(true) // what stands still renews nothing
	r.store.View(name).SetUnavailable(true)
	require.NoError(r.t, r.Net.Freeze(name))
}

func (r *round) resume(name string) {
	require.NoError(r.t, r.Net.Thaw(name))
	r.Member(name).Store.Heal()
	r.store.View(name).Heal()
	r.gates[name].open()
	delete(r.paused, name)
}

// restart ends a member in good order, and starts it again as another incarnation.
func (r *round) restart(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(r.t, r.managers[name].Stop(ctx))
	m := r.Member(name)
	if !m.Down() {
		require.NoError(r.t, m.Serf.Leave())
	}
	_ = m.Serf.Shutdown()
	require.NoError(r.t, m.Provider.Stop(ctx))
	r.Start(name)
	r.Eventually(2*time.Minute, name+" is not admitted", func() bool { return r.Member(name).Provider.Peers().State != "arming" })
	r.start(name)
}

// settle waits until the cluster is whole again, starts whoever was downed anew, and expects the singleton to run in one place.
func (r *round) settle() {
	time.Sleep(30 * time.Second)
	for name := range r.managers {
		if r.Member(name).Down() && !r.paused[name] {
			r.say("%s was downed, and starts again", name)
			r.restart(name)
		}
	}
	defer func() {
		if r.t.Failed() {
			r.dump()
		}
	}()
	r.Eventually(3*time.Minute, "the singleton does not run again", func() bool {
		active := 0
		for name, m := range r.managers {
			if m.Status().Phase == "active" && !r.paused[name] {
				active++
			}
		}
		return active == 1
	})
	time.Sleep(5 * time.Second)
}

func (r *round) dump() {
	for _, line := range r.log {
		r.t.Log(line)
	}
	for name, m := range r.managers {
		r.t.Logf("%s: paused %v, down %v, %+v", name, r.paused[name], r.Member(name).Down(), m.Status())
		for _, p := range r.Member(name).Provider.Peers().List {
			r.t.Logf("  %s %s unreachable=%v serves=%v", p.ID, p.Status, p.Unreachable, p.Serves)
		}
	}
}

// play plays a round in virtual time, and returns what the resource says.
func play(t *testing.T, seed uint64, withLease bool) (report ledger.Report, log []string) {
	synctest.Test(t, func(t *testing.T) {
		r := &round{rng: rand.New(rand.NewPCG(seed, 1)), store: memory.NewStore(), gates: make(map[string]*gate), paused: make(map[string]bool)}
		for i := 1; i <= 5; i++ {
			r.gates[clustertest.Name(i)] = new(gate)
		}
		server, err := ledger.Open(ledger.Config{File: filepath.Join(t.TempDir(), "ledger")})
		require.NoError(t, err)
		defer server.Close()
		r.client = ledger.Client{URL: "http://ledger", HTTP: &http.Client{Transport: direct{server}}}
		c := clustertest.New(t, clustertest.Options{Config: func(name string, cfg *downing.Config) {
			quick(name, cfg)
			cfg.Pause = r.gates[name].pass
		}})
		r.crew = newCrew(t, c, func(name string, cfg *singleton.Config) {
			cfg.Run, cfg.Pause = r.work(name), r.gates[name].pass
			if withLease {
				cfg.Store = r.store.View(name)
			}
		})
		defer c.Stop()
		r.startAll(5)
		defer r.stop()
		defer func() {
			for name := range r.paused {
				r.resume(name)
			}
			log = r.log
		}()
		r.settle()
		for range 3 {
			r.happen()
		}
		lines, err := r.client.Lines(t.Context())
		require.NoError(t, err)
		report = ledger.Analyse(lines)
	})
	return report, log
}

// Rounds of partitions, pauses, crashes, rolling updates and stores that are away, each with three such things: no write of an older run is
// accepted after one of a newer run. What would have overlapped without the fence is printed. SBR_ROUNDS says how many rounds; without it there are few.
func TestRounds_TheResourceSeesTokensInOrder(t *testing.T) {
	rounds := uint64(4)
	if n, err := strconv.ParseUint(os.Getenv("SBR_ROUNDS"), 10, 64); err == nil {
		rounds = n
	}
	for _, way := range []string{"without a lease", "with a lease"} {
		t.Run(way, func(t *testing.T) {
			var overlaps, refused, changes int
			var longest time.Duration
			var planned, unplanned []time.Duration
			for seed := range rounds {
				report, log := play(t, seed, way == "with a lease")
				require.True(t, report.Clean(), "seed %d: %v\n%+v", seed, log, report)
				overlaps += len(report.Overlaps)
				refused += report.Refused
				longest = max(longest, report.Overlap.Max)
				for _, c := range report.Changes {
					changes++
					if c.Planned {
						planned = append(planned, c.Gap)
					} else {
						unplanned = append(unplanned, c.Gap)
					}
				}
			}
			t.Logf("%d rounds, %d changes of owner; without the fence %d overlaps, the longest %v; %d writes refused; gaps planned %s, unplanned %s",
				rounds, changes, overlaps, longest, refused, spread(planned), spread(unplanned))
		})
	}
}

func spread(all []time.Duration) string {
	if len(all) == 0 {
		return "none"
	}
	slices.Sort(all)
	return fmt.Sprintf("p50 %v, max %v", all[len(all)/2], all[len(all)-1])
}
