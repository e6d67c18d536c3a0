package downing_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// protected starts a single node with its provider and waits until the resolver is armed.
func (s *single) protected(change ...func(*downing.Config)) (*downing.Provider, func()) {
	s.t.Helper()
	p := s.provider(change...)
	node := s.create(p, nil, nil)
	require.NoError(s.t, p.Start(s.t.Context(), node))
	time.Sleep(10 * time.Second)
	return p, func() {
		_ = node.Leave()
		s.end(p, node)
	}
}

// F1: a resolver that makes no progress, here because a hook hangs, would miss its verdict: the member goes
// down.
func TestWatchdog_LoopIsStuck(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		release := make(chan struct{})
		began := time.Now()
		p, end := s.protected(func(c *downing.Config) {
			c.Observe = func(o downing.Occurrence) {
				if o.Kind == string(sbr.TopicArmed) {
					<-release
				}
			}
		})
		var followed atomic.Pointer[sbr.State]
		p.Follow(func() { followed.Store(new(p.Peers().State)) })
		<-p.Downed()
		require.Less(t, time.Since(began), 40*time.Second)
		require.Contains(t, p.Reason(), "no progress for 20s")
		requireDown := func() {
			require.Equal(t, sbr.StateDown, p.Status().State)
			require.Equal(t, sbr.StateDown, p.Peers().State, "what the loop showed last does not hide it")
		}
		requireDown()
		synctest.Wait()
		require.Equal(t, sbr.StateDown, *followed.Load())
		_, err := p.Ask("who", "", nil, time.Second)
		require.ErrorIs(t, err, downing.ErrNotMember)
		<-p.Done()
		close(release)
		time.Sleep(time.Minute)
		requireDown()
		end()
	})
}

// blockedLog is a log that nobody reads any more, from the first line with a topic on: a pipe that is full.
type blockedLog struct {
	slog.Handler
	from    string
	blocks  *atomic.Bool
	release <-chan struct{}
}

func (h blockedLog) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "topic" && a.Value.String() == h.from {
			h.blocks.Store(true)
		}
		return true
	})
	if h.blocks.Load() {
		<-h.release
	}
	return nil
}

func (h blockedLog) WithAttrs([]slog.Attr) slog.Handler { return h }

// F1: a log that takes nothing any more keeps no member up: neither the lines before the end nor its own.
func TestDown_TheLogIsStuck(t *testing.T) {
	for from, within := range map[string]time.Duration{
		string(sbr.TopicArmed): 40 * time.Second, downing.OccurredVerdict: 40 * time.Second, // by the watchdog
		downing.OccurredDown: time.Second,
	} {
		t.Run(from, func(t *testing.T) {
			alone(t, func(t *testing.T, s *single) {
				release := make(chan struct{})
				p, end := s.protected(func(c *downing.Config) {
					c.Logger = slog.New(blockedLog{slog.NewTextHandler(io.Discard, nil), from, new(atomic.Bool), release})
				})
				s.Store.Restore(lease.Record{Token: 1, Verdict: &sbr.Verdict{Token: 1, DecidedBy: "other#u",
					Reason: "won"}})
				began := time.Now()
				<-p.Downed()
				require.Less(t, time.Since(began), within)
				require.Equal(t, sbr.StateDown, p.Status().State)
				<-p.Done()
				require.LessOrEqual(t, time.Since(began), within+downing.DefaultConfig().Grace+time.Second)
				close(release)
				end()
			})
		})
	}
}

// Whatever the loop was about to do when it got stuck, it does not do it once the member is down.
func TestWatchdog_StuckLoopDoesNothingMore(t *testing.T) {
	var stuck atomic.Bool
	virtual(t, func(name string, c *downing.Config) {
		if observe := c.Observe; name == "n1" {
			c.Observe = func(o downing.Occurrence) {
				observe(o)
				if o.Kind == string(sbr.TopicDecision) && !stuck.Swap(true) {
					time.Sleep(26 * time.Second) // and then it would ask for the lease
				}
			}
		}
	}, func(t *testing.T, c *cluster) {
		c.Form(3)
		require.NoError(t, c.Net.Partition([]string{"n1", "n2"}, []string{"n3"}))
		c.Eventually(2*time.Minute, "n1 is stuck and still up", func() bool { return c.Member("n1").Down() })
		require.Contains(t, c.provider("n1").Reason(), "no progress")
		time.Sleep(5 * time.Minute)
		for _, o := range c.Occurred("n1") {
			require.NotEqual(t, downing.OccurredAsking, o.Kind)
		}
		require.Len(t, c.Up(), 1, "one of the others went on without it")
	})
}

// A process that stood still is no stuck loop: it learns its fate and goes on.
func TestWatchdog_PauseIsNoFailure(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		var until atomic.Pointer[time.Time]
		p, end := s.protected(func(c *downing.Config) {
			c.Pause = func() {
				if u := until.Load(); u != nil {
					time.Sleep(time.Until(*u))
				}
			}
		})
		later := time.Now().Add(10 * time.Minute)
		until.Store(&later)
		time.Sleep(11 * time.Minute)
		require.False(t, isDown(p), p.Reason())
		require.Equal(t, sbr.StateUp, p.Status().State)
		end()
	})
}

// Nor is a slow one, which makes some progress each time.
func TestWatchdog_SlowLoopIsNoFailure(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		slow := 0
		p, end := s.protected(func(c *downing.Config) {
			c.Observe = func(o downing.Occurrence) {
				if o.Kind == downing.OccurredVerdict {
					slow++
					time.Sleep(15 * time.Second)
				}
			}
		})
		for token := uint64(1); token <= 3; token++ {
			self := sbr.ID(p.Status().Incarnation)
			s.Store.Restore(lease.Record{Token: token,
				Verdict: &sbr.Verdict{Token: token, DecidedBy: "other#u", Survivors: []sbr.ID{self}}})
			time.Sleep(time.Minute)
		}
		require.Equal(t, 3, slow)
		require.False(t, isDown(p), p.Reason())
		end()
	})
}

// F1: a hook that ends the resolver's goroutine, as a failing assertion in it does, leaves nobody
// unprotected.
func TestFailSafe_HookEndsTheGoroutine(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		p, end := s.protected(func(c *downing.Config) { c.Observe = func(downing.Occurrence) { runtime.Goexit() } })
		<-p.Done()
		require.Contains(t, p.Reason(), "a hook ended its goroutine")
		end()
	})
}

// F1: a hook that panics, even at the news that the member is down, does not keep the application from being
// told.
func TestFailSafe_HookPanicsAtEverything(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		told := make(chan string, 1)
		p, end := s.protected(func(c *downing.Config) { c.Observe = func(o downing.Occurrence) { panic(o.Kind) } })
		p.OnDown(func(reason string) { told <- reason })
		require.Contains(t, <-told, "panic: armed")
		<-p.Done()
		end()
	})
}

// moody is a store whose watch does what a test wants before it works.
type moody struct {
	*leasetest.Faulty
	watch func(n int64) error
	calls atomic.Int64
}

func (m *moody) Watch(ctx context.Context, f func(lease.Snapshot)) error {
	if err := m.watch(m.calls.Add(1)); err != nil {
		return err
	}
	return m.Faulty.Watch(ctx, f)
}

// F1: a panic beside the loop, here in the embedder's store, fails the member as well, and in an orderly way.
func TestFailSafe_StorePanics(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		store := &moody{Faulty: s.Store.View("n1"), watch: func(int64) error { panic("a broken store") }}
		p, end := s.protected(func(c *downing.Config) { c.Store = store })
		<-p.Done()
		require.Contains(t, p.Reason(), "the resolver failed: panic: a broken store")
		end()
	})
}

// A watch that ends although it should not is begun again: a loser would hear of its verdict too late.
func TestWatch_BeginsAgain(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		store := &moody{Faulty: s.Store.View("n1"), watch: func(n int64) error {
			if n < 4 {
				return errors.New("the connection is gone")
			}
			return nil
		}}
		p, end := s.protected(func(c *downing.Config) { c.Store = store })
		require.Equal(t, int64(4), store.calls.Load())
		s.Store.Restore(lease.Record{Token: 1, Verdict: &sbr.Verdict{Token: 1, DecidedBy: "other#u",
			Reason: "somebody else won"}})
		time.Sleep(100 * time.Millisecond)
		require.True(t, isDown(p))
		require.Contains(t, p.Reason(), "somebody else won")
		<-p.Done()
		end()
	})
}
