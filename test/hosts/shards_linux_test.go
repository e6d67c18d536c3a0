package hosts_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/ledger"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
)

// settlesWithin bounds how long it takes until every shard runs again after a fault, on a busy machine.
const settlesWithin = 90 * time.Second

// endsWithin bounds the end of a process that was downed: its grace is 15 s.
const endsWithin = 30 * time.Second

// sharded is a rig with shards that write to a ledger.
type sharded struct {
	*recorded
}

// newSharded returns when all shards run.
func newSharded(t *testing.T, g cluster.Guard) *sharded {
	t.Helper()
	needsRoot(t)
	dir, err := ledgerPrograms()
	require.NoError(t, err)
	o := restarting(3)
	o.Shards = &cluster.Shards{Program: filepath.Join(dir, "shardhost"), Type: "work", Count: 8, Guard: g,
		Every: 10 * time.Millisecond}
	s := &sharded{newRecorded(t, ownNode, o, dir,
		func(o *cluster.Options, url string) { o.Shards.Ledger = url })}
	s.resources = o.Shards.Resources()
	s.settled()
	return s
}

// settled waits until every shard runs and returns where the coordinator is, and the owners of the shards.
func (s *sharded) settled() (coordinator string, on map[string]string) {
	s.t.Helper()
	coordinator, seen, err := s.WaitShards(s.within(settlesWithin))
	require.NoError(s.t, err)
	on = make(map[string]string)
	for _, r := range seen.Shards {
		on["work-"+r.Shard] = r.Name
	}
	s.t.Logf("%s coordinates %v", coordinator, on)
	return coordinator, on
}

// work waits for accepted work on every shard later than after, by members on other hosts than these.
func (s *sharded) work(after time.Duration, notOn ...string) {
	s.t.Helper()
	for _, resource := range s.resources {
		_, err := s.ledger.Find(s.within(settlesWithin), resource, after, func(l ledger.Line) bool {
			return l.Accepted && l.Kind == ledger.Work && !slices.Contains(notOn, downing.NameOf(sbr.ID(l.Member)))
		})
		require.NoError(s.t, err)
	}
}

// of are the changes of owner from a host, later than after.
func of(r *ledger.Report, host string, after time.Duration) (all []ledger.Change) {
	for _, c := range r.Changes {
		if c.At > after && downing.NameOf(sbr.ID(c.From)) == host {
			all = append(all, c)
		}
	}
	return all
}

// Something happens to the host of the coordinator, which runs shards too. All shards run elsewhere, each
// once, and in the end everything is as it was.
func TestShards_TheCoordinatorsHost(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		guard   cluster.Guard
		happen  func(s *sharded, host string)
		planned bool
		end     func(s *sharded, host string)
	}{
		{"is cut off", cluster.ByMembers, func(s *sharded, host string) {
			require.NoError(s.t, s.lab.Partition([]string{host}, without(five, []string{host})))
		}, false, func(s *sharded, _ string) { require.NoError(s.t, s.lab.Heal()) }},
		{"crashes", cluster.ByMembers, func(s *sharded, host string) {
			require.NoError(s.t, s.Crash(s.t.Context(), host))
		}, false, func(s *sharded, host string) { s.Restore(host) }},
		{"leaves", cluster.ByBoth, func(s *sharded, host string) {
			require.NoError(s.t, s.Member(host).Leave(s.within(time.Minute)))
		}, true, func(s *sharded, host string) { s.Restore(host) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newSharded(t, tc.guard)
			host, _ := s.settled()
			before := s.mark("before")
			tc.happen(s, host)
			s.work(s.mark("happened"), host)
			tc.end(s, host)
			s.waitWhole(rejoinWithin)
			s.settled()
			s.work(s.mark("settled"))
			r := s.report()
			changes := of(&r, host, before)
			require.NotEmpty(t, changes)
			for _, c := range changes {
				t.Logf("%s from %s to %s: nothing for %v", c.Resource, c.From, c.To, c.Began-c.Ended)
			}
			require.Empty(t, r.Overlaps)
			if tc.planned {
				require.Empty(t, s.downed())
				for _, c := range changes {
					require.True(t, c.Planned)
					require.Less(t, c.Began-c.Ended, promptly)
				}
			}
		})
	}
}

// A host stands still until it is replaced. What its shards write when it goes on is refused.
func TestShards_PausedHostWritesLate(t *testing.T) {
	t.Parallel()
	s := newSharded(t, cluster.ByMembers)
	host, _ := s.settled()
	s.Member(host).SetRestart(false)
	still, err := s.lab.Freeze(s.within(time.Minute), host)
	require.NoError(t, err)
	s.work(s.mark("frozen"), host)
	require.NoError(t, still.Continue())
	exit, err := s.Member(host).SBR.WaitExit(s.within(resolveWithin), 1)
	require.NoError(t, err)
	require.Equal(t, downing.ExitDowned, exit.Code)
	require.NotZero(t, s.report().Refused)
}
