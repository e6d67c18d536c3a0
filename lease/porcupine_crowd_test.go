package lease_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// patient settings are those of a run in which nobody expires.
var patient = lease.Settings{HeartbeatTimeout: time.Hour, HeartbeatInterval: 2 * time.Second,
	OperationTimeout: time.Second}

// crowd is a run of many clients over one store in virtual time.
type crowd struct {
	seed           uint64
	clients, steps int
	settings       lease.Settings
	// pause is the longest time between two steps of a client.
	pause time.Duration
	// mortal clients crash and come back under another name, are cut off, stand still, watch, and have clocks
	// of their own, which are set while they run; somebody edits the record's labels.
	mortal bool
	// naive clients let differences of wall clocks decide.
	naive bool
	// over replaces the connection to the store. Nil: flaky.
	over func(lease.Store, chance) lease.Store
}

// run plays the crowd and returns what its clients saw, and what an observer of all of them saw.
func (c crowd) run(t *testing.T) (h *linear.History, o *observer) {
	synctest.Test(t, func(t *testing.T) { h, o = c.play(t) })
	return h, o
}

func (c crowd) play(t *testing.T) (*linear.History, *observer) {
	store := leasetest.NewMemory()
	o := observe(store, c.settings)
	var options linear.Options
	if c.mortal {
		options = linear.Options{Expiring: true,
			Tokens: func(nonce string) []uint64 { return tokensOf(store, nonce) }}
	}
	h := linear.New(options)
	var all sync.WaitGroup
	for i := range c.clients {
		all.Go(func() { c.client(t, h, o, store.View(strconv.Itoa(i)), i) })
	}
	all.Wait()
	last, err := h.Open(c.clients, 0, store.View("last"), c.settings, lease.Options{})
	require.NoError(t, err)
	defer last.Close()
	_, err = last.Read(t.Context())
	require.NoError(t, err)
	if c.mortal {
		o.lookForLockOut(t)
	}
	o.lookAtCommits(store.History())
	return h, o
}

// client lives through the lives of one client.
func (c crowd) client(t *testing.T, h *linear.History, o *observer, view *leasetest.Faulty, i int) {
	random := rand.New(rand.NewPCG(c.seed, uint64(i)))
	clock := newClock(0, 1)
	clock.naive = c.naive
	if c.mortal {
		clock.rate, clock.skew = slowest+random.Float64()*(fastest-slowest), time.Duration(i)*time.Hour
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
		o.begins(client, clock)
		var watch sync.WaitGroup
		if c.mortal && i%3 == 0 {
			watch.Go(func() { _ = client.Watch(t.Context(), func(lease.Record) {}) })
		}
		steps := 1
		for steps < left && !(c.mortal && random.IntN(100) < 15) {
			steps++
		}
		left -= steps
		client.Play(t.Context(), random, steps, c.settings.OperationTimeout, func() {
			time.Sleep(time.Duration(random.Int64N(int64(c.pause))))
			o.look()
			if !c.mortal {
				return
			}
			switch n := random.IntN(100); {
			case n < 8:
				o.freeze(clock, time.Duration(random.IntN(20))*time.Second)
			case n < 13:
				clock.set(time.Duration(random.Int64N(int64(14*day))) - 7*day)
			case n < 16:
				o.store.Touch()
			}
		})
		if left == 0 {
			store.heal()
			time.Sleep(15 * time.Second) // late commits end, and what is in doubt is tidied up
			client.Look()
		}
		o.ends(client)
		client.Close()
		watch.Wait()
	}
}

const slowest, fastest = 0.95, 1.05

// observer looks at all clients at once, by the true clock, which the answers to single clients do not show.
type observer struct {
	store    *leasetest.Memory
	settings lease.Settings

	mu     sync.Mutex
	alive  map[*linear.Client]*machineClock
	broken []string
	// holder is the record's holder, and sign when that was last written.
	holder    string
	sign      time.Time
	takeovers int
}

func observe(store *leasetest.Memory, s lease.Settings) *observer {
	o := &observer{store: store, settings: s, alive: map[*linear.Client]*machineClock{}}
	store.OnCommit(o.atCommit)
	return o
}

func (o *observer) begins(c *linear.Client, clock *machineClock) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.alive[c] = clock
}

func (o *observer) ends(c *linear.Client) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.alive, c)
}

// freeze stops a process, but not while it is looked at.
func (o *observer) freeze(clock *machineClock, d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	clock.freeze(d)
}

func (o *observer) fail(format string, args ...any) {
	o.broken = append(o.broken, fmt.Sprintf(format, args...))
}

// holders lists the owners that say that they hold the lease. A paused process says nothing. Called under mu.
func (o *observer) holders() (who []string) {
	for c, clock := range o.alive {
		if !clock.frozen() && c.Check() {
			who = append(who, c.Owner())
		}
	}
	return who
}

func (o *observer) look() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if who := o.holders(); len(who) > 1 {
		o.fail("several holders: %v", who)
	}
}

// atCommit is the heart of the matter: at the instant at which a record is written, nobody but its holder
// says "held".
func (o *observer) atCommit(r lease.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, who := range o.holders() {
		if who != r.Holder {
			o.fail("%s says it holds the lease while %q is written under token %d", who, r.Holder, r.Token)
		}
	}
	if o.holder != "" && r.Holder != "" && r.Holder != o.holder {
		o.takeovers++
		least := time.Duration(float64(o.settings.HeartbeatTimeout) / fastest)
		if silent := time.Since(o.sign); silent < least {
			o.fail("%q was replaced by %q after %v of silence: less than %v", o.holder, r.Holder, silent, least)
		}
	}
	o.holder, o.sign = r.Holder, time.Now()
}

// lookForLockOut: when all clients have ended somebody new must get the lease in bounded time.
func (o *observer) lookForLockOut(t *testing.T) {
	heir, err := lease.New(o.store.View("heir"), "heir", o.settings, lease.Options{})
	require.NoError(t, err)
	defer heir.Close()
	for start := time.Now(); ; time.Sleep(time.Second) {
		if linear.AnswerOf(heir.Acquire(t.Context(), lease.Proposal{})).Kind == sbr.Granted {
			return
		}
		if time.Since(start) > 3*o.settings.HeartbeatTimeout {
			o.fail("locked out: %+v", o.store.Snapshot())
			return
		}
	}
}

// lookAtCommits looks at what the store went through.
func (o *observer) lookAtCommits(history []lease.Record) {
	var last lease.Record
	for _, r := range history {
		switch {
		case r.Token < last.Token:
			o.fail("the token went back from %d to %d", last.Token, r.Token)
		case r.Token > last.Token+1:
			o.fail("the token jumped from %d to %d", last.Token, r.Token)
		case r.Token == last.Token && r.Nonce != last.Nonce:
			o.fail("token %d was given twice, as %q and %q", r.Token, last.Nonce, r.Nonce)
		case r.Token == last.Token && r.Holder != last.Holder && r.Holder != "":
			o.fail("token %d went from %q to %q", r.Token, last.Holder, r.Holder)
		case r.Verdict == nil && last.Verdict != nil:
			o.fail("the verdict vanished under token %d", r.Token)
		case r.Verdict != nil && r.Verdict.Token > r.Token:
			o.fail("verdict %d under token %d", r.Verdict.Token, r.Token)
		}
		if r.Verdict != nil && last.Verdict != nil {
			if r.Verdict.Token < last.Verdict.Token {
				o.fail("the verdict went back from %d to %d", last.Verdict.Token, r.Verdict.Token)
			}
			for _, id := range r.Verdict.Survivors {
				if !slices.Contains(last.Verdict.Survivors, id) {
					o.fail("%s is back among the survivors under token %d", id, r.Token)
				}
			}
		}
		last = r
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
