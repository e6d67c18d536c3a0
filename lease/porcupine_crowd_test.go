package lease_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
)

// patient settings are those of a run in which nobody expires.
var patient = lease.Settings{HeartbeatTimeout: time.Hour, HeartbeatInterval: 2 * time.Second, OperationTimeout: time.Second}

// crowd is a run of many clients over one store in virtual time.
type crowd struct {
	seed           uint64
	clients, steps int
	settings       lease.Settings
	// pause is the longest time between two steps of a client.
	pause time.Duration
	// mortal clients crash and come back under another name, are cut off, stand still, and have clocks of their own.
	mortal bool
	// over replaces the connection to the store. Nil: flaky.
	over func(lease.Store, chance) lease.Store
}

// run plays the crowd and returns what its clients saw.
func (c crowd) run(t *testing.T) (h *linear.History) {
	synctest.Test(t, func(t *testing.T) { h = c.play(t) })
	return h
}

func (c crowd) play(t *testing.T) *linear.History {
	store := leasetest.NewMemory()
	var options linear.Options
	if c.mortal {
		options = linear.Options{Expiring: true, Tokens: func(nonce string) []uint64 { return tokensOf(store, nonce) }}
	}
	h := linear.New(options)
	var all sync.WaitGroup
	for i := range c.clients {
		all.Go(func() { c.client(t, h, store.View(strconv.Itoa(i)), i) })
	}
	all.Wait()
	last, err := h.Open(c.clients, 0, store.View("last"), c.settings, lease.Options{})
	require.NoError(t, err)
	defer last.Close()
	_, err = last.Read(t.Context())
	require.NoError(t, err)
	return h
}

// client lives through the lives of one client.
func (c crowd) client(t *testing.T, h *linear.History, view *leasetest.Faulty, i int) {
	random := rand.New(rand.NewPCG(c.seed, uint64(i)))
	clock := newClock(0, 1)
	if c.mortal {
		clock.rate, clock.skew = 0.95+random.Float64()/10, time.Duration(i)*time.Hour
	}
	luck := newChance(c.seed, i)
	store := &flaky{Faulty: view, luck: luck, mortal: c.mortal}
	var over lease.Store = store
	if c.over != nil {
		over = c.over(view, luck)
	}
	for lives, left := 0, c.steps; left > 0; lives++ {
		client, err := h.Open(i, lives, over, c.settings, lease.Options{Clock: clock})
		if err != nil {
			panic(err)
		}
		steps := 1
		for steps < left && !(c.mortal && random.IntN(100) < 15) {
			steps++
		}
		left -= steps
		client.Play(t.Context(), random, steps, c.settings.OperationTimeout, func() {
			time.Sleep(time.Duration(random.Int64N(int64(c.pause))))
			if c.mortal && random.IntN(100) < 8 {
				clock.freeze(time.Duration(random.IntN(20)) * time.Second)
			}
		})
		if left == 0 {
			store.heal()
			time.Sleep(15 * time.Second) // late commits end, and what is in doubt is tidied up
			client.Look()
		}
		client.Close()
	}
}

// tokensOf lists the tokens under which a nonce was granted.
func tokensOf(s *leasetest.Memory, nonce string) (tokens []uint64) {
	for _, r := range s.History() {
		if r.Nonce == nonce && r.Holder != "" && (len(tokens) == 0 || tokens[len(tokens)-1] != r.Token) {
			tokens = append(tokens, r.Token)
		}
	}
	return tokens
}

// chance is a random source for several goroutines.
type chance struct {
	mu     *sync.Mutex
	random *rand.Rand
}

func newChance(seed uint64, i int) chance {
	return chance{&sync.Mutex{}, rand.New(rand.NewPCG(seed, 1000+uint64(i)))}
}

func (c chance) below(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.IntN(n)
}

func (c chance) upTo(d time.Duration) time.Duration { return time.Duration(c.below(int(d))) }

// flaky draws a fate for each request.
type flaky struct {
	*leasetest.Faulty
	luck   chance
	mortal bool

	mu     sync.Mutex
	healed bool
	back   time.Time // the end of an outage
}

func (f *flaky) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.healed = true
	f.Faulty.Heal()
}

func (f *flaky) Read(ctx context.Context) (lease.Snapshot, error) {
	f.draw()
	return f.Faulty.Read(ctx)
}

func (f *flaky) Write(ctx context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
	f.draw()
	return f.Faulty.Write(ctx, r, prev)
}

func (f *flaky) draw() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.healed {
		return
	}
	f.Faulty.Heal()
	if time.Now().Before(f.back) {
		f.SetUnavailable(true)
		return
	}
	switch f.luck.below(20) {
	case 0:
		f.Inject(leasetest.All, leasetest.LoseRequest, 1)
	case 1, 2:
		f.Inject(leasetest.All, leasetest.LoseResponse, 1)
	case 3, 4:
		f.CommitLate(1, f.luck.upTo(12*time.Second))
	case 5:
		f.Inject(leasetest.Writes, leasetest.Conflict, 1)
	case 6:
		f.SetUnavailable(true)
	case 7:
		f.SetDelay(f.luck.upTo(900 * time.Millisecond))
	case 8:
		f.Inject(leasetest.Writes, leasetest.Refuse, f.luck.below(2))
	case 9:
		if f.mortal && f.luck.below(3) == 0 {
			f.back = time.Now().Add(f.luck.upTo(25 * time.Second))
		}
	}
}
