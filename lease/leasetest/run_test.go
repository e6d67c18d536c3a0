package leasetest_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/lease/memory"
)

// coarse keeps whole seconds.
type coarse struct{ *memory.Store }

func (c coarse) Write(ctx context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
	r.Renewed, r.Acquired = r.Renewed.Truncate(time.Second), r.Acquired.Truncate(time.Second)
	return c.Store.Write(ctx, r, prev)
}

// rounding shows its watchers other times than its readers.
type rounding struct{ *memory.Store }

func (c rounding) Watch(ctx context.Context, fn func(lease.Snapshot)) error {
	return c.Store.Watch(ctx, func(s lease.Snapshot) {
		s.Record.Renewed = s.Record.Renewed.Add(-time.Microsecond)
		fn(s)
	})
}

// mute is open, healthy and silent.
type mute struct{ *memory.Store }

func (mute) Watch(ctx context.Context, _ func(lease.Snapshot)) error {
	<-ctx.Done()
	return ctx.Err()
}

// broken are backends that break the contract, each in its own way, and the test that must tell.
var broken = map[string]struct {
	harness func(s *memory.Store) leasetest.Harness
	found   string
}{
	"keeps whole seconds": {
		func(s *memory.Store) leasetest.Harness { return over(coarse{s}) }, "nothing_is_lost_in_storage",
	},
	"shows watchers other times": {
		func(s *memory.Store) leasetest.Harness { return over(rounding{s}) }, "a_heartbeat_is_one_write",
	},
	"tells its watchers nothing": {
		func(s *memory.Store) leasetest.Harness { h := over(mute{s}); h.Patience = time.Second; return h },
		"a_watch_reports_the_present",
	},
	"forgets in a failover": {
		func(s *memory.Store) leasetest.Harness {
			h := over(s)
			h.Failover = func(testing.TB) {
				for history := s.History(); ; history = s.History() {
					// the replica lags behind by two grants: the first of them was answered
					for _, r := range slices.Backward(history) {
						if r.Token+2 <= history[len(history)-1].Token {
							s.Restore(r)
							return
						}
					}
				}
			}
			return h
		}, "a_failover_forgets_nothing_that_was_answered",
	},
}

func over(s lease.Store) leasetest.Harness {
	return leasetest.Harness{Open: func(testing.TB, string) lease.Store { return s }}
}

// A suite that cannot fail is worth nothing. It runs in a process of its own, where it may.
func TestRun_FindsBrokenBackends(t *testing.T) {
	const which = "LEASETEST_BROKEN"
	if name := os.Getenv(which); name != "" {
		leasetest.Run(t, func(*testing.T) leasetest.Harness { return broken[name].harness(memory.NewStore()) })
		return
	}
	for name, c := range broken {
		t.Run(name, func(t *testing.T) {
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRun_FindsBrokenBackends$")
			child.Env = append(os.Environ(), which+"="+name)
			out, err := child.CombinedOutput()
			require.Error(t, err, "the suite has passed")
			require.Contains(t, string(out), c.found)
		})
	}
}
