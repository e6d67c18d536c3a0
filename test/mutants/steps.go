package main

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// tier is a part of the suite.
type tier string

const (
	// unit are the tests of the resolver and the strategies: golden scenarios, tables, properties.
	unit tier = "unit"
	// simulator are the tests of the simulator, the scenario files, and the walk through every interleaving.
	simulator tier = "simulator"
)

// step is one command of the suite. Steps run from cheap to dear.
type step struct {
	name string
	tier tier
	// dear steps are left out of --quick.
	dear bool
	// of are the folders whose mutants the step is for. Empty: all.
	of  []string
	run func(ctx context.Context, t *tree) (result, error)
}

// theSuite finds the packages of the simulator, so that a new one is part of it at once. Steps are small, so
// that little is built in vain.
func theSuite(ctx context.Context, t *tree) ([]step, error) {
	stdout, stderr, ok, err := t.goRun(ctx, "list", "./simulator/...")
	if err == nil && !ok {
		err = fmt.Errorf("go list:\n%s", tail(stderr))
	}
	if err != nil {
		return nil, err
	}
	rest, walks := []string{"-short"}, []string{"-short"}
	for pkg := range strings.FieldsSeq(string(stdout)) {
		switch path.Base(pkg) {
		case "scenario": // a step of its own
		case "explore":
			walks = append(walks, pkg)
		default:
			rest = append(rest, pkg)
		}
	}
	return []step{
		{name: "the resolver", tier: unit, run: tests(2*time.Minute, "./sbr")},
		{name: "the rest of the core", tier: unit, run: tests(2*time.Minute, "./sbr/reachability", "./sbr/timing", "./strategies")},
		{name: "the lease", tier: unit, dear: true, of: []string{"lease"}, run: tests(5*time.Minute, "./lease")},
		{name: "the provider", tier: unit, dear: true, of: []string{"downing"}, run: tests(5*time.Minute, "-run",
			"^Test(FailSafe|Watchdog|Heal|Membership|Vanished|Forgets|Memory|Stores|Tags|Whole|Start_|Leave|Pause_|Bootstrap|Down_|Beside_Start|Beside_Adoption|Newcomer_Beside|Peers_Sure)", "./downing")},
		{name: "the agent and its configuration", tier: unit, dear: true, of: []string{"internal/agent", "internal/attach", "internal/config"},
			run: tests(2*time.Minute, "-short", "./internal/config", "./internal/attach",
				"./internal/agent/...")},
		{name: "singletons", tier: unit, of: []string{"singleton", "internal/handover", "internal/locate", "internal/slot"},
			run: tests(2*time.Minute, "./internal/slot/...", "./internal/handover", "./internal/locate",
				"./singleton/...")},
		{name: "shards", tier: unit, of: []string{"sharding", "internal/shards", "internal/slot"},
			run: tests(2*time.Minute, "-skip", "^TestThousand", "./internal/shards/...", "./sharding/...")},
		{name: "some random runs", tier: simulator, run: tests(2*time.Minute, "-short", "-run", "^TestRandom", "./simulator/internal/world")},
		{name: "the scenario files", tier: simulator, dear: true, run: tests(5*time.Minute, "-short", "./simulator/scenario")},
		{name: "the rest of the simulator", tier: simulator, dear: true, run: tests(5*time.Minute, rest...)},
		{name: "the scenario files with many seeds", tier: simulator, dear: true,
			run: tests(5*time.Minute, "-run", "^TestLibrary_EveryScenarioPasses$", "./simulator/scenario")},
		{name: "many random runs", tier: simulator, dear: true, run: tests(5*time.Minute, "-run", "^TestRandom", "./simulator/internal/world")},
		{name: "every interleaving", tier: simulator, dear: true, run: tests(10*time.Minute, walks...)},
	}, nil
}

// tests is a step of go test. A test that hangs is stopped after limit.
func tests(limit time.Duration, args ...string) func(context.Context, *tree) (result, error) {
	return func(ctx context.Context, t *tree) (result, error) {
		verb := []string{"test", "-json", "-vet=off", "-failfast", "-timeout", limit.String()}
		stdout, stderr, ok, err := t.goRun(ctx, slices.Concat(verb, args)...)
		if err != nil {
			return result{}, err
		}
		return readTests(t.module, slices.Concat(stderr, stdout), ok)
	}
}
