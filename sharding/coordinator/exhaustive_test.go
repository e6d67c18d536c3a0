package coordinator_test

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/allocation"
	"github.com/serf-sbr/serf-sbr/sharding/coordinator"
	"github.com/serf-sbr/serf-sbr/sharding/host"
	"github.com/serf-sbr/serf-sbr/sharding/membership"
	"github.com/serf-sbr/serf-sbr/sharding/message"
)

// walk is one state of a small cluster in which everything that can come next is tried: each message that is under way may be the next to arrive.
type walk struct {
	t     require.TestingT
	now   time.Duration
	hosts []*host.Machine
	runs  []map[int]uint64 // tokens by shard
	gone  []bool           // crashed
	down  []bool           // and the others were told
	leave int              // the member that leaves; negative: none

	chief  int
	term   uint64
	coord  *coordinator.Machine
	flying []flight
	tokens [2]uint64

	losses, changes, crashes, steps int // that may still come
}

// flight is a message, or the end of a run, that is under way.
type flight struct {
	to, from int
	answer   bool
	chief    bool   // the coordinator asked
	term     uint64 // of the coordinator that asked
	end      host.RunEnded
	message  message.Message
}

func (f *flight) key() string {
	return fmt.Sprintf("%d %d %v %v %d %v %d %x", f.to, f.from, f.answer, f.chief, f.term, f.end.Shard, f.end.Run, message.Append(nil, &f.message))
}

func (w *walk) id(i int) sbr.ID { return sbr.ID(fmt.Sprintf("n%d", i+1)) }

func newWalk(t require.TestingT, hosts int) *walk {
	w := &walk{t: t, runs: make([]map[int]uint64, hosts), gone: make([]bool, hosts), down: make([]bool, hosts), leave: -1}
	for i := range hosts {
		cfg := host.DefaultConfig()
		cfg.Self, cfg.Shards, cfg.Digest, cfg.NumberOfRetries, cfg.Margin = w.id(i), 2, 1, 3, margin
		h, err := host.New(cfg, 0)
		require.NoError(t, err)
		w.hosts = append(w.hosts, h)
		w.runs[i] = map[int]uint64{}
	}
	w.look()
	w.appoint(0)
	return w
}

func (w *walk) appoint(i int) {
	alloc, err := allocation.New("orders", []string{"a", "b"}, allocation.DefaultConfig())
	require.NoError(w.t, err)
	cfg := coordinator.DefaultConfig()
	w.term++
	cfg.Self, cfg.Term, cfg.Allocator, cfg.Digest, cfg.NumberOfRetries, cfg.Margin = w.id(i), w.term, alloc, 1, 3, margin
	cfg.AuditInterval = time.Hour
	w.coord, err = coordinator.New(cfg, w.now)
	require.NoError(w.t, err)
	w.chief = i
	w.toCoordinator(coordinator.Viewed{View: w.view()})
}

func (w *walk) view() membership.View {
	v := membership.View{Armed: true, Sure: w.now + time.Hour}
	for i := range w.hosts {
		v.Peers = append(v.Peers, membership.Peer{ID: w.id(i), Name: string(w.id(i)), Candidate: true, Leaving: i == w.leave, Down: w.down[i]})
	}
	return v
}

func (w *walk) look() {
	for i := range w.hosts {
		w.toHost(i, host.Viewed{View: w.view()})
	}
	w.toCoordinator(coordinator.Viewed{View: w.view()})
}

func (w *walk) toHost(i int, e host.Event) {
	if !w.gone[i] {
		w.hostEffects(i, w.hosts[i].Step(w.now, e))
	}
}

func (w *walk) toCoordinator(e coordinator.Event) {
	if w.coord != nil {
		w.coordEffects(w.coord.Step(w.now, e))
	}
}

func (w *walk) fly(f flight) {
	if f.to >= 0 {
		w.flying = append(w.flying, f)
		return
	}
	for i := range w.hosts {
		if f.to = i; i != f.from || f.chief {
			w.flying = append(w.flying, f)
		}
	}
}

func (w *walk) index(id sbr.ID) int {
	for i := range w.hosts {
		if w.id(i) == id {
			return i
		}
	}
	return -1
}

func (w *walk) coordEffects(effects []coordinator.Effect) {
	for _, e := range slices.Clone(effects) {
		switch e := e.(type) {
		case coordinator.Ask:
			if e.Message.Kind != message.Places {
				w.fly(flight{to: w.index(e.To), from: w.chief, chief: true, term: w.term, message: e.Message})
			}
		case coordinator.Answer:
			w.fly(flight{to: int(e.Ref), from: w.chief, answer: true, message: e.Message})
		case coordinator.Resign:
			require.Fail(w.t, "nobody knows a larger term")
		}
	}
}

func (w *walk) hostEffects(i int, effects []host.Effect) {
	for _, e := range slices.Clone(effects) {
		switch e := e.(type) {
		case host.Ask:
			w.fly(flight{to: w.index(e.To), from: i, message: e.Message})
		case host.Answer:
			chief, term, to := e.Ref>>8&1 == 1, e.Ref>>16, int(e.Ref&0xff)
			w.fly(flight{to: to, from: i, answer: true, chief: chief, term: term, message: e.Message})
		case host.Start:
			for o := range w.hosts {
				require.NotContains(w.t, w.runs[o], e.Shard, "shard %d runs on %s already when %s starts it", e.Shard, w.id(o), w.id(i))
			}
			require.Greater(w.t, e.Token, w.tokens[e.Shard])
			w.tokens[e.Shard] = e.Token
			w.runs[i][e.Shard] = e.Token
		case host.Stop:
			w.fly(flight{to: i, from: i, end: host.RunEnded{Shard: e.Shard, Run: e.Run}})
		}
	}
}

// arrive takes the i-th of what is under way to where it goes.
func (w *walk) arrive(i int) {
	f := w.flying[i]
	w.flying = slices.Delete(w.flying, i, i+1)
	switch {
	case w.gone[f.to]:
	case f.end.Run > 0:
		delete(w.runs[f.to], f.end.Shard)
		w.toHost(f.to, f.end)
	case f.answer && f.chief:
		if f.to == w.chief && f.term == w.term {
			w.toCoordinator(coordinator.Answered{From: w.id(f.from), Message: f.message})
		}
	case f.answer:
		w.toHost(f.to, host.Answered{From: w.id(f.from), Message: f.message})
	default:
		if f.to == w.chief && !f.chief {
			w.toCoordinator(coordinator.Asked{Ref: uint64(f.from), From: w.id(f.from), Message: f.message})
		}
		ref := uint64(f.from) | f.term<<16
		if f.chief {
			ref |= 1 << 8
		}
		w.toHost(f.to, host.Asked{Ref: ref, From: w.id(f.from), Message: f.message})
	}
}

// wait lets time pass until something is due. It reports false if nothing is.
func (w *walk) wait() bool {
	at, ok := time.Duration(0), false
	consider := func(t time.Duration, due bool) {
		if due && (!ok || t < at) {
			at, ok = t, true
		}
	}
	for i, h := range w.hosts {
		if !w.gone[i] {
			consider(h.NextDeadline())
		}
	}
	if w.coord != nil {
		consider(w.coord.NextDeadline())
	}
	if !ok || at > w.now+30*time.Second {
		return false
	}
	w.now = max(w.now, at)
	for i, h := range w.hosts {
		if !w.gone[i] {
			w.hostEffects(i, h.Tick(w.now))
		}
	}
	if w.coord != nil {
		w.coordEffects(w.coord.Tick(w.now))
	}
	return true
}

// settle has everything arrive in order until all shards run, and reports whether they do within so many waits.
func (w *walk) settle(waits int) bool {
	for {
		for len(w.flying) > 0 {
			w.arrive(0)
		}
		if len(w.running()) == len(w.tokens) {
			return true
		}
		if waits--; waits < 0 || !w.wait() {
			return false
		}
	}
}

func (w *walk) running() map[int]bool {
	all := map[int]bool{}
	for i := range w.hosts {
		for s := range w.runs[i] {
			all[s] = all[s] || !w.gone[i]
		}
	}
	return all
}

func (w *walk) clone(t require.TestingT) *walk {
	c := *w
	c.t = t
	c.hosts, c.runs = slices.Clone(w.hosts), slices.Clone(w.runs)
	for i := range w.hosts {
		c.hosts[i], c.runs[i] = w.hosts[i].Clone(), maps.Clone(w.runs[i])
	}
	c.gone, c.down, c.flying = slices.Clone(w.gone), slices.Clone(w.down), slices.Clone(w.flying)
	if w.coord != nil {
		c.coord = w.coord.Clone()
	}
	return &c
}

func (w *walk) digest() [32]byte {
	b := fmt.Appendf(nil, "%v %v %d %d %d %d %d %d ", w.gone, w.down, w.chief, w.term, w.losses, w.changes, w.crashes, w.steps)
	for i, h := range w.hosts {
		b = h.AppendState(append(b, '#'))
		for s := range w.tokens {
			b = fmt.Appendf(b, "%d ", w.runs[i][s])
		}
	}
	if w.coord != nil {
		b = w.coord.AppendState(append(b, '#'))
	}
	keys := make([]string, 0, len(w.flying))
	for i := range w.flying {
		keys = append(keys, w.flying[i].key())
	}
	slices.Sort(keys)
	return sha256.Sum256(fmt.Append(b, keys))
}

// remove tells the others that the member that crashed is down. If it coordinated, another one does.
func (w *walk) remove() {
	w.down[len(w.hosts)-1] = true
	w.look()
	if w.coord == nil {
		w.appoint(0)
	}
}

// next returns all states that can come next.
func (w *walk) next(t require.TestingT) (list []*walk) {
	try := func(do func(c *walk)) {
		c := w.clone(t)
		do(c)
		list = append(list, c)
	}
	tried := map[string]bool{}
	for i := range w.flying {
		if k := w.flying[i].key(); !tried[k] {
			tried[k] = true
			try(func(c *walk) { c.arrive(i) })
			if f := &w.flying[i]; w.losses > 0 && f.end.Run == 0 && f.to != f.from {
				try(func(c *walk) { c.losses--; c.flying = slices.Delete(c.flying, i, i+1) })
			}
		}
	}
	last := len(w.hosts) - 1
	if w.changes > 0 && !w.gone[(w.chief+1)%len(w.hosts)] {
		try(func(c *walk) { c.changes--; c.appoint((c.chief + 1) % len(c.hosts)) })
	}
	if w.crashes > 0 {
		try(func(c *walk) {
			c.crashes--
			c.gone[last], c.runs[last] = true, map[int]uint64{}
			if c.chief == last {
				c.coord = nil
			}
		})
	}
	if len(w.flying) == 0 && w.gone[last] && !w.down[last] {
		try((*walk).remove)
	} else if len(w.flying) == 0 && w.steps > 0 {
		try(func(c *walk) { c.steps--; c.wait() })
	}
	return list
}

// TestEveryOrder tries every order in which messages can arrive while the shards of a member that leaves, which may crash meanwhile, go elsewhere; one
// message may be lost at any point, and the coordinator may change at any point. From each state that is reached all shards run again once
// everything arrives.
func TestEveryOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("takes up to a minute")
	}
	for _, c := range []struct {
		name                     string
		hosts                    int
		losses, changes, crashes int
		steps                    int
	}{
		{"3 hosts, one leaves, the coordinator changes", 3, 0, 1, 0, 3},
		{"3 hosts, one leaves, a message is lost", 3, 1, 0, 0, 2},
		{"3 hosts, one leaves and crashes", 3, 0, 0, 1, 3},
		{"3 hosts, one leaves and crashes, the coordinator changes", 3, 0, 1, 1, 2},
		{"3 hosts, one leaves and crashes, the coordinator changes, a message is lost", 3, 1, 1, 1, 0},
		{"2 hosts, one leaves and crashes, the coordinator changes, a message is lost", 2, 1, 1, 1, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWalk(t, c.hosts)
			require.True(t, w.settle(20), "before anything happens")
			for w.now < time.Minute && w.wait() {
				for len(w.flying) > 0 {
					w.arrive(0)
				}
			}
			w.losses, w.changes, w.crashes, w.steps = c.losses, c.changes, c.crashes, c.steps
			w.leave = c.hosts - 1
			w.look()
			states := explore(t, w)
			t.Logf("%d states", states)
		})
	}
}

func explore(t *testing.T, w *walk) int {
	seen := map[[32]byte]bool{w.digest(): true}
	stack := []*walk{w}
	for len(stack) > 0 {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		next := s.next(t)
		for _, n := range next {
			if d := n.digest(); !seen[d] {
				seen[d] = true
				stack = append(stack, n)
			}
		}
		if len(s.flying) == 0 {
			end := s.clone(t)
			if last := len(s.hosts) - 1; end.gone[last] && !end.down[last] {
				end.remove()
			}
			require.True(t, end.settle(40), "all shards run again")
		}
	}
	return len(seen)
}
