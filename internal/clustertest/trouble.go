package clustertest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
)

// Trouble lets things happen to a cluster's members: partitions, pauses, crashes, rolling updates, stores
// that are away. A seed decides which.
type Trouble struct {
	c      *Cluster
	rng    *rand.Rand
	names  []string
	gates  Gates // each pauses a whole member: its resolver, what runs on top of it, its packets
	paused map[string]bool

	// Restart ends a member in good order, and starts it again. Settle waits until the cluster has dealt with
	// what has happened. Stores are a member's other stores than that of the verdicts. Favourite is the
	// member to which things happen most often; empty: none.
	Restart   func(name string)
	Settle    func()
	Stores    func(name string) []*leasetest.Faulty
	Favourite func() string
	// Log says what has happened.
	Log []string
}

// Troubled runs a test in virtual time, on a cluster that decides quickly, and with trouble for its members
// n1 to nN, which are yet to be started. Code on top of them calls Pass where a paused member stops. The
// members are ended after the test; none may be paused any more then.
func Troubled(t *testing.T, n int, seed uint64, test func(t *testing.T, c *Cluster, trouble *Trouble)) {
	t.Helper()
	trouble := &Trouble{rng: rand.New(rand.NewPCG(seed, 1)), names: Names(n), paused: make(map[string]bool)}
	Virtual(t, Options{Config: func(name string, cfg *downing.Config) {
		Quick(name, cfg)
		cfg.Pause = func() { trouble.Pass(name) }
	}}, func(t *testing.T, c *Cluster) {
		trouble.c = c
		test(t, c, trouble)
	})
}

// Pass returns at once, or when the member goes on.
func (t *Trouble) Pass(name string) { t.gates.Of(name).Pass() }

// Paused reports whether a member is paused.
func (t *Trouble) Paused(name string) bool { return t.paused[name] }

// Attending are the members that are neither down nor paused.
func (t *Trouble) Attending() (names []string) {
	for _, name := range t.names {
		if !t.c.Member(name).Down() && !t.paused[name] {
			names = append(names, name)
		}
	}
	return names
}

func (t *Trouble) say(format string, args ...any) {
	t.Log = append(t.Log, fmt.Sprintf(format, args...))
}

func (t *Trouble) seconds(n int) time.Duration { return time.Duration(t.rng.IntN(n)) * time.Second }

// Happen lets one thing happen, and waits until the cluster has dealt with it and everybody who was downed is
// there again.
func (t *Trouble) Happen() {
	names := t.Attending()
	victim := names[t.rng.IntN(len(names))]
	if f := t.Favourite(); f != "" && t.rng.IntN(2) == 0 {
		victim = f
	}
	switch what := t.rng.IntN(6); {
	case what == 0 && len(names) > 2:
		t.partition(names)
	case what <= 2:
		d := time.Second + t.seconds(60)
		t.say("pause %s for %v", victim, d)
		t.Pause(victim)
		time.Sleep(d)
		t.resume(victim)
	case what == 3 && len(names) > 3:
		t.say("crash %s", victim)
		t.Pause(victim) // for good
	case what == 4:
		t.say("rolling update of %v", names)
		for _, name := range slices.Backward(names) {
			t.Restart(name)
		}
	default:
		t.say("no store for %s", victim)
		t.away(victim)
		time.Sleep(t.seconds(30))
		t.back(victim)
	}
	time.Sleep(30 * time.Second)
	for _, name := range t.names {
		if t.c.Member(name).Down() && !t.paused[name] {
			t.say("%s was downed, and starts again", name)
			t.Restart(name)
		}
	}
	t.Settle()
}

func (t *Trouble) partition(names []string) {
	cut := 1 + t.rng.IntN(len(names)-1)
	t.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	t.say("partition %v | %v", names[:cut], names[cut:])
	one := slices.Clone(names[:cut])
	for _, name := range t.names {
		if !slices.Contains(names, name) {
			one = append(one, name) // it makes no difference to members that are gone
		}
	}
	require.NoError(t.c.t, t.c.Net.Partition(one, names[cut:]))
	time.Sleep(t.seconds(40))
	t.c.Net.Heal()
	t.say("heal")
}

// Pause pauses a member.
func (t *Trouble) Pause(name string) {
	t.paused[name] = true
	t.gates.Of(name).Close()
	t.away(name) // a paused member renews nothing
	require.NoError(t.c.t, t.c.Net.Freeze(name))
}

func (t *Trouble) resume(name string) {
	require.NoError(t.c.t, t.c.Net.Thaw(name))
	t.back(name)
	t.gates.Of(name).Open()
	delete(t.paused, name)
}

func (t *Trouble) away(name string) {
	for _, v := range append(t.Stores(name), t.c.Member(name).Store) {
		v.SetUnavailable(true)
	}
}

func (t *Trouble) back(name string) {
	for _, v := range append(t.Stores(name), t.c.Member(name).Store) {
		v.Heal()
	}
}

// End continues all paused members.
func (t *Trouble) End() {
	for name := range t.paused {
		t.resume(name)
	}
}

// Gate blocks the callers that pass it while it is closed. The zero Gate is open. It is safe for concurrent
// use.
type Gate struct {
	mu     sync.Mutex
	closed chan struct{} // nil: open
}

// Pass returns at once, or when the gate is opened.
func (g *Gate) Pass() {
	g.mu.Lock()
	closed := g.closed
	g.mu.Unlock()
	if closed != nil {
		<-closed
	}
}

// Close closes the gate, if it is not.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed == nil {
		g.closed = make(chan struct{})
	}
}

// Open lets all blocked callers go on.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed != nil {
		close(g.closed)
		g.closed = nil
	}
}

// Gates are a gate for each member. The zero Gates are open. They are safe for concurrent use.
type Gates struct {
	mu    sync.Mutex
	gates map[string]*Gate
}

// Of returns the gate of a member.
func (g *Gates) Of(name string) *Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gates == nil {
		g.gates = make(map[string]*Gate)
	}
	if g.gates[name] == nil {
		g.gates[name] = new(Gate)
	}
	return g.gates[name]
}
