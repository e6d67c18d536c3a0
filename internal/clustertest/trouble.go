package clustertest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease/memory"
)

// Trouble lets things happen to a cluster's members: partitions, pauses, crashes, rolling updates, stores that are away. A seed decides which.
type Trouble struct {
	c   *Cluster
	rng *rand.Rand
	// Names are the members.
	names  []string
	gates  map[string]*gate
	paused map[string]bool

	// Restart ends a member in good order, and starts it again. Settle waits until the cluster has dealt with what has happened. Stores are a member's
	// other stores than that of the verdicts. Favourite is the member to which things happen most often; empty: none.
	Restart   func(name string)
	Settle    func()
	Stores    func(name string) []*memory.View
	Favourite func() string
	// Log says what has happened.
	Log []string
}

// gate lets a whole member stand still: its resolver, what runs on top of it, its packets.
type gate struct {
	mu   sync.Mutex
	shut chan struct{}
}

// NewTrouble returns trouble for the members n1 to nN, which are yet to be started: their configurations call Pass where a member that stands still stops.
func NewTrouble(n int, seed uint64) *Trouble {
	t := &Trouble{rng: rand.New(rand.NewPCG(seed, 1)), gates: make(map[string]*gate), paused: make(map[string]bool)}
	for i := 1; i <= n; i++ {
		t.names = append(t.names, Name(i))
		t.gates[Name(i)] = new(gate)
	}
	return t
}

// For says which cluster is meant.
func (t *Trouble) For(c *Cluster) { t.c = c }

// Pass returns at once, or when the member goes on.
func (t *Trouble) Pass(name string) {
	g := t.gates[name]
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut != nil {
		<-shut
	}
}

// Paused reports whether a member stands still.
func (t *Trouble) Paused(name string) bool { return t.paused[name] }

// Attending are the members that are neither down nor stand still.
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

// Happen lets one thing happen, and waits until the cluster has dealt with it and everybody who was downed is there again.
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
			one = append(one, name) // it makes no difference to who is gone
		}
	}
	require.NoError(t.c.t, t.c.Net.Partition(one, names[cut:]))
	time.Sleep(t.seconds(40))
	t.c.Net.Heal()
	t.say("heal")
}

// Pause lets a member stand still.
func (t *Trouble) Pause(name string) {
	t.paused[name] = true
	g := t.gates[name]
	g.mu.Lock()
	g.shut = make(chan struct{})
	g.mu.Unlock()
	t.away(name) // what stands still renews nothing
	require.NoError(t.c.t, t.c.Net.Freeze(name))
}

func (t *Trouble) resume(name string) {
	require.NoError(t.c.t, t.c.Net.Thaw(name))
	t.back(name)
	g := t.gates[name]
	g.mu.Lock()
	close(g.shut)
	g.shut = nil
	g.mu.Unlock()
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

// End lets everybody go on who stands still.
func (t *Trouble) End() {
	for name := range t.paused {
		t.resume(name)
	}
}
