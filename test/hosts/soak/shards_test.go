//go:build linux

package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/ledger"
	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
)

// A change is told by when it was, whether the old run had stopped, and whether its host was hit.
func TestMovesOf_Shards(t *testing.T) {
	change := func(resource, from string, at, gap time.Duration, planned bool) ledger.Change {
		return ledger.Change{Resource: resource, From: from + "#a", To: "n2#b", At: at * time.Second,
			Ended: (at - gap) * time.Second, Began: at * time.Second, Gap: time.Hour, Planned: planned}
	}
	log := marks{begin: 10 * time.Second, ready: 12 * time.Second, cut: 20 * time.Second,
		healed: 40 * time.Second, end: 50 * time.Second}
	changes := []ledger.Change{
		change("a", "n1", 9, 1, true),                                   // of the round before
		change("a", "n1", 11, 1, true),                                  // and what it left to be done
		change("a", "n3", 15, 1, true),                                  // before anything happens
		change("a", "n1", 30, 9, false), change("a", "n1", 31, 1, true), // n1 is hit
		change("b", "n1", 32, 9, false), change("b", "n3", 33, 1, true), // n3 is not
		change("c", "n1", 45, 20, true), // it has stopped before the heal, and nobody could start
		change("c", "n2", 46, 1, true), change("d", "n2", 47, 1, false),
		change("d", "n4", 48, 1, true), // it has stood still until the heal, and was downed
	}
	of := func(p plan, changes ...ledger.Change) (causes []cause) {
		hit := fate{struck: p.hurt(), downed: map[string]string{"n4#a": "lost"}}
		for _, m := range movesOf(changes, &p, log, hit, 12*time.Second) {
			causes = append(causes, m.Cause)
		}
		return causes
	}
	crashed := plan{Shape: whole, Faults: []fault{{Kind: crash, Hosts: []string{"n1"}}},
		Single: &singlePlan{Shards: 8, Scene: crashScene}}
	require.Equal(t, []cause{
		byBalance, byHandOver, cause(crashScene), cause(crashScene), cause(crashScene), byOther, byHeal, byBalance,
		byHeal, byHeal,
	}, of(crashed, changes...))
	moves := movesOf(changes, &crashed, log, fate{struck: []string{"n1"}}, 12*time.Second)
	require.Equal(t, move{Cause: cause(crashScene), From: "n1", To: "n2", Gap: 9, Since: 10, Bound: 12},
		moves[2], "what happens between two entries does not count")
	require.Zero(t, moves[3].Bound, "only the first one of a shard is the fault's")
	require.NotZero(t, moves[4].Bound)

	more := plan{Shape: halves, Faults: []fault{{Kind: storeSome}},
		Single: &singlePlan{Shards: 8, Scene: cutScene}}
	require.Equal(t, []cause{byMore}, of(more, changes[3]))
	rolling := plan{Shape: whole, Single: &singlePlan{Shards: 8, Scene: rollingScene, InPeace: true}}
	require.Equal(t, []cause{byRolling}, of(rolling, changes[3]))
	rolling.Single.InPeace = false
	require.Equal(t, []cause{byDesertion}, of(rolling, changes[3]))
	for kind, want := range map[kind]cause{departure: cause(leaveScene), desertion: byDesertion} {
		leaves := plan{Shape: whole, Faults: []fault{{Kind: kind, Hosts: []string{"n1"}}},
			Single: &singlePlan{Shards: 8, Scene: leaveScene}}
		require.Equal(t, []cause{want, byOther}, of(leaves, changes[3], changes[6]))
		left := movesOf(changes[3:4], &leaves, log, fate{struck: []string{"n1"}}, time.Second)
		require.Zero(t, left[0].Bound, "nothing has to be noticed")
	}
}

func TestShards_ShowsWhatTheLedgerSays(t *testing.T) {
	results := []result{{Plan: newShardPlan(1, 1),
		Single: &singleResult{Moves: []move{{Cause: byBalance, Gap: 0.05}, {Cause: byDesertion, Gap: 1}}}}}
	s := summary{Seed: 1, Played: 1, Planned: 1, Parallel: 3,
		Single: summarizeSingle(results, []ledger.Report{{Lines: 5, Accepted: 4, Refused: 1}})}
	requireLines(t, s.write, "for the sake of balance members 1 50 ms / 50 ms / 50 ms",
		"hosts leave with their shards members 1 1.0 s")
}

func TestOptions_Shards(t *testing.T) {
	o, err := parseOptions([]string{"--shards", "--seed", "5"}, new(bytes.Buffer))
	require.NoError(t, err)
	require.Equal(t, planText(t, newShardPlan(5, 7)), planText(t, o.plan(7)))
	require.Equal(t, stageKind{mode: ownMode, guard: cluster.ByMembers, shards: shardCount}, o.first(1))
	require.Equal(t, stageKind{mode: ownMode, guard: cluster.ByBoth, shards: shardCount}, o.first(2))
	require.Equal(t, "go run -C test ./hosts/soak --seed 5 --round 7 --shards", command(&o, 7))
	_, err = parseOptions([]string{"--shards", "--singleton"}, new(bytes.Buffer))
	require.ErrorContains(t, err, "one at a time")
}
