package lock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/lease/lock"
)

// Locks of random types and durations fight over one record through bad connections. Never do two hold it,
// and never do two works go on whose contexts have not ended; once the connections are good again, the lock
// can be had.
func TestProperty_OneHolderWhateverIsLost(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := fight{
			seed:    rapid.Uint64().Draw(rt, "seed"),
			p:       rapid.SampledFrom([]float64{0, 0.1, 0.5, 0.8}).Draw(rt, "p"),
			longest: time.Duration(rapid.IntRange(1, 60).Draw(rt, "longest")) * time.Second,
			renew:   rapid.Bool().Draw(rt, "keep-alive"),
		}
		for range 3 {
			f.kinds = append(f.kinds, rapid.SampledFrom(kinds[:2]).Draw(rt, "kind"))
			f.durations = append(f.durations, time.Duration(rapid.IntRange(1, 60).Draw(rt, "duration"))*time.Second)
		}
		synctest.Test(t, f.run)
		if f.wrong != "" {
			rt.Fatalf("%s", f.wrong)
		}
	})
}

// The check notices what must not be: an administrator among them.
func TestProperty_TheChecksNotice(t *testing.T) {
	f := fight{
		longest: time.Second, kinds: []lock.Type{lock.SingleEntrant, lock.Overriding},
		durations: []time.Duration{time.Minute, time.Minute},
	}
	synctest.Test(t, f.run)
	assert.Contains(t, f.wrong, "at once")
}

type fight struct {
	seed      uint64
	p         float64
	longest   time.Duration
	renew     bool
	kinds     []lock.Type
	durations []time.Duration
	wrong     string
}

func (f *fight) run(t *testing.T) {
	store := leasetest.NewMemory()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var all sync.WaitGroup
	var mu sync.Mutex
	works := map[int]context.Context{}
	var locks []*lock.Lock
	var faulty []*leasetest.Faulty
	for i, kind := range f.kinds {
		connection := leasetest.NewFaulty(store.View(fmt.Sprint(i)))
		f.spoil(connection, rand.New(rand.NewPCG(f.seed, uint64(i))))
		k, err := lock.New(connection, lock.Config{
			Type: kind, Duration: f.durations[i], KeepAlive: f.renew, OperationTimeout: 2 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		locks, faulty = append(locks, k), append(faulty, connection)
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				_ = k.Do(ctx, func(ctx context.Context) error {
					mu.Lock()
					works[i] = ctx
					mu.Unlock()
					time.Sleep(time.Duration(n%7) * f.durations[i] / 5)
					mu.Lock()
					delete(works, i)
					mu.Unlock()
					return nil
				})
				time.Sleep(time.Duration(1+n%4) * time.Second)
			}
		})
	}
	for ctx.Err() == nil {
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		held, working := 0, 0
		mu.Lock()
		for i, k := range locks {
			if k.Held() {
				held++
			}
			if w := works[i]; w != nil && w.Err() == nil {
				working++
			}
		}
		mu.Unlock()
		if held > 1 || working > 1 {
			f.wrong = fmt.Sprintf("%d hold it and %d work at once", held, working)
		}
	}
	all.Wait()
	for _, connection := range faulty {
		connection.OnRequest(nil)
		connection.Heal()
	}
	time.Sleep(3 * time.Minute) // what is under way arrives, what is in doubt is undone, what is held runs out
	ok, err := locks[0].Acquire(t.Context())
	if !ok && err == nil {
		time.Sleep(time.Minute) // it has looked for the first time
		ok, err = locks[0].Acquire(t.Context())
	}
	if !ok {
		f.wrong += fmt.Sprintf("; after healing nobody can have it: %v", err)
	}
	for i, k := range locks {
		if err := k.Close(); err != nil {
			f.wrong += err.Error()
		}
		faulty[i].Close()
	}
}

// slow is no fault of a request: the connection takes its time.
const slow leasetest.Fault = "slow"

// spoil lets each request through the connection decide what the next one meets.
func (f *fight) spoil(connection *leasetest.Faulty, random *rand.Rand) {
	var mu sync.Mutex
	upTo := func(d time.Duration) time.Duration { return time.Duration(random.Int64N(int64(d))) }
	connection.OnRequest(func(bool) {
		mu.Lock()
		defer mu.Unlock()
		connection.Heal()
		if random.Float64() >= f.p {
			return
		}
		faults := []leasetest.Fault{
			leasetest.Unavailable, leasetest.LoseRequest, leasetest.LoseResponse, leasetest.BreakResponse,
			leasetest.Conflict, leasetest.Refuse, leasetest.CommitLate, slow,
		}
		switch fault := faults[random.IntN(len(faults))]; fault {
		case leasetest.CommitLate:
			connection.CommitLate(1, upTo(f.longest))
		case slow:
			connection.SetDelay(upTo(f.longest))
		default:
			connection.Inject(leasetest.All, fault, 1)
		}
	})
}
