package scenario

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/config"
)

// scenarioTexts document the keys of scenario files; those of sbr.yaml are documented by internal/config.
var scenarioTexts = map[string]string{
	"name":                         "What people call the scenario. Default: the name of the file.",
	"cluster":                      "What the run starts with: all nodes up, and known to each other.",
	"cluster.system":               "Name of the cluster. Default: scenario.",
	"cluster.nodes":                "How many nodes (n1, n2 and so on), or a list of them. Their order is that of their addresses and of their age. Default: 5.",
	"cluster.nodes.name":           "What the node is called: letters, digits, and the signs - . and _ (at most 128).",
	"cluster.nodes.roles":          "Roles, which strategies may be limited to.",
	"cluster.nodes.zone":           "A name that stands for all nodes with it where nodes are listed.",
	"cluster.split-brain-resolver": "The rules that all members decide by, as in sbr.yaml.",
	"cluster.lease":                "The times of the lease, as in sbr.yaml. The places of lease stores mean nothing here.",
	"cluster.detection":            "How long members need to notice: a profile of Serf's failure detector, or times. Default: serf-lan.",
	"cluster.detection.after":      "The least time from a cut to \"failed\". Default: 4s.",
	"cluster.detection.spread":     "What chance adds to both times at most. Default: 1s.",
	"cluster.detection.heal":       "The least time from a repair to \"alive\". Default: 1s.",
	"cluster.network":              "The properties of every link that is not cut.",
	"cluster.network.latency":      "The least time a message takes. Default: 1ms.",
	"cluster.network.jitter":       "What chance adds to it at most. Default: 1ms.",
	"cluster.network.loss":         "The share of packets that vanish, from 0 to 1. Default: 0.",
	"cluster.reap-after":           "When Serf forgets a failed member: its reconnect time-out. Default: 24h.",

	"cluster.settings": "What of the rules differs at single members, by their names. All should have the same: members that do not name each other.",

	"cluster.singletons":                          "What runs on one member only, the oldest: see docs/singletons.md.",
	"cluster.singletons.name":                     "What the expectations call it: 1 to 50 of a-z, 0-9, and the signs - . and _.",
	"cluster.singletons.role":                     "Only nodes with this role run it. Default: all do.",
	"cluster.singletons.use-lease":                "It runs only with a lease of its own. Default: off.",
	"cluster.singletons.removal-margin":           "How long after the removal of a member that may have run it nothing starts. Default: stable-after.",
	"cluster.singletons.hand-over-retry-interval": "The pause between two tries to ask the others. Default: 1s.",
	"cluster.singletons.number-of-retries":        "How often a silent member is asked before a lease decides. Default: 15.",
	"cluster.singletons.lease-retry-interval":     "The pause between two tries to get the lease. Default: 5s.",
	"cluster.singletons.stop-takes":               "How long a run takes to end at most once it was asked to. Default: 1s.",
	"cluster.singletons.ends-after":               "About how long a run lasts before it ends by itself. Default: it does not.",

	"cluster.shards":                          "What is spread over the members, each shard on one: see docs/singletons.md.",
	"cluster.shards.type":                     "What the expectations call these shards: 1 to 40 of a-z, 0-9, and the signs - . and _.",
	"cluster.shards.count":                    "How many shards there are. Default: 8.",
	"cluster.shards.role":                     "Only nodes with this role run them. Default: all do.",
	"cluster.shards.use-lease":                "Each runs only with a lease of its own, and so does their coordinator. Default: off.",
	"cluster.shards.removal-margin":           "How long after the removal of a member nothing starts elsewhere that it may have run. Default: stable-after.",
	"cluster.shards.hand-over-retry-interval": "The pause between two tries to ask the others. Default: 1s.",
	"cluster.shards.number-of-retries":        "How often a silent member is asked before leases decide. Default: 15.",
	"cluster.shards.lease-retry-interval":     "The pause between two tries to get a lease. Default: 5s.",
	"cluster.shards.stop-takes":               "How long a run takes to end at most once it was asked to. Default: 1s.",
	"cluster.shards.ends-after":               "About how long a run lasts before it ends by itself. Default: it does not.",
	"cluster.shards.reopened-after":           "About how long a member hosts shards before its manager is stopped and another one started. Default: it is not.",

	"steps":                     "What happens. Those at the same time happen in the order of the file. Each has a time and exactly one action.",
	"steps.at":                  "When it happens, counted from the start of the run: 10s, or a range such as 10s..20s from which the seed of each run draws.",
	"steps.partition":           "Cuts the network into groups of nodes or zones; who is not named is in one group more. Replaces the last partition.",
	"steps.cut":                 "Cuts the link between two nodes, both ways.",
	"steps.cut-one-way":         "[from, to]: drops what the first node sends to the second.",
	"steps.heal":                "Repairs every link. It must be true.",
	"steps.link":                "Sets loss and latency of what goes between two nodes or zones, both ways: loss 1 cuts, loss 0 with latency 0s heals.",
	"steps.link-one-way":        "[from, to]: sets loss and latency of what the first sends to the second.",
	"steps.loss":                "The share of packets that vanish on this link, from 0 to 1.",
	"steps.latency":             "How much longer packets take on this link, from 0s.",
	"steps.crash":               "Stops a node at once.",
	"steps.restart":             "Starts a node anew, with its state folder; if it still runs it crashes first.",
	"steps.as":                  "Another name under which a node that restarts comes back.",
	"steps.state":               "lost: a node that restarts has lost its state folder, and cannot prove that its predecessor ended.",
	"steps.force-leave":         "An operator removes these nodes or zones from Serf's list, as soon as they are called failed there.",
	"steps.on":                  "The nodes or zones on which force-leave is run. Default: wherever the others are called failed.",
	"steps.down":                "An operator downs this node for good (sbr down), by a verdict of the lease, or by an order without one. Needs by.",
	"steps.by":                  "The member whose agent the operator asks to down a node.",
	"steps.leave":               "Makes a node leave in good order.",
	"steps.join":                "Adds a node that was not there from the start.",
	"steps.pause":               "Stops a node without ending it, as SIGSTOP or a long garbage collection does. Needs for.",
	"steps.for":                 "How long a pause or a fault of the lease store lasts, or a range from which the seed draws; a fault without it lasts to the end.",
	"steps.lease-store":         "Hurts the way to the lease store: down, lose-requests, lose-responses, conflict, or {slow: 800ms}. Or it forgets: forget, {restore: 30s}.",
	"steps.lease-store.slow":    "How much longer each answer takes.",
	"steps.lease-store.restore": "The time of the run at which the store held what it holds from now on.",
	"steps.rights":              "none: the store refuses whatever these nodes ask.",
	"steps.nodes":               "The nodes or zones whose way to the store is hurt. Default: all.",
	"steps.clock":               "Sets the clocks of a node.",
	"steps.clock.node":          "The node whose clocks these are.",
	"steps.clock.skew":          "How far its wall clock is ahead; negative: behind.",
	"steps.clock.rate":          "How fast its monotonic clock runs, from 0.01 to 100; 1 is right.",

	"run-for":                 "How much time passes in all. Required; leave enough after the last step for a decision.",
	"expect":                  "What must hold at the end. What is left out is not checked; the promises S1 to S5 always are.",
	"expect.survivors":        "Exactly the nodes that run and were not downed.",
	"expect.survivors-one-of": "Sets of nodes of which one must be the survivors.",
	"expect.survivor-count":   "How many survive.",
	"expect.down":             "Exactly the nodes that were downed. Who crashed or left is not among them.",
	"expect.lease-holder":     "Who holds the lease, or none.",
	"expect.resolved-within":  "Limit of the time from the last step that cut something (without one: that crashed, restarted, paused or downed a member; else that worsened a link) until all was settled.",
	"expect.singletons":       "Where each of these singletons runs at the end, or none.",
	"expect.shards":           "The nodes on which all shards of these types run at the end; each runs some.",
	"expect.decisions":        "The last decision of each of these nodes; none: it made none.",
}

// schemaTexts are the texts of all keys of scenario files.
func schemaTexts() map[string]string {
	texts := configTexts()
	maps.Copy(texts, scenarioTexts)
	return texts
}

// configTexts are the texts of the keys of sbr.yaml, which a scenario has under cluster.
func configTexts() map[string]string {
	texts := make(map[string]string)
	for _, k := range config.Keys() {
		text := k.Text
		if k.Default != "" && k.Default != `""` {
			text += " Default: " + k.Default + "."
		}
		texts["cluster."+k.Path] = text
	}
	return texts
}

//go:generate go test . -run ^TestSchema_IsCurrent$ -update

var updateSchema = flag.Bool("update", false, "write the schemas anew")

// The files are what the types and the documentation of the keys make of it.
func TestSchema_IsCurrent(t *testing.T) {
	made, madeConfig := makeSchema(t), makeConfigSchema(t)
	const path = "../../docs/scenario.md"
	if *updateSchema {
		require.NoError(t, os.WriteFile(path, []byte(makePage()), 0o644))
		require.NoError(t, os.WriteFile("scenario.schema.json", made, 0o644))
		require.NoError(t, os.WriteFile("../../internal/config/sbr.schema.json", madeConfig, 0o644))
		return
	}
	require.True(t, bytes.Equal(made, Schema()), "run: make generate")
	require.True(t, bytes.Equal(madeConfig, config.Schema()), "run: make generate")
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, makePage() == string(page), "%s is not what the program knows: run make generate", path)
}

// makePage is the page of the keys of a scenario file.
func makePage() string {
	var b strings.Builder
	b.WriteString("<!-- made by make generate from the keys of package simulator/scenario -->\n\n# Scenario keys\n\n" +
		"Every key of a scenario file; an example of each action is in [the simulator](simulator.md#the-file). `cluster.split-brain-resolver` and " +
		"`cluster.lease` have the keys of [sbr.yaml](configuration.md). `sbr schema scenario` prints the JSON Schema.\n\n| key | meaning |\n|---|---|\n")
	for _, key := range slices.Sorted(maps.Keys(scenarioTexts)) {
		text := strings.NewReplacer("<", "&lt;", "|", "\\|", "docs/singletons.md",
			"[singletons](singletons.md)").Replace(scenarioTexts[key])
		fmt.Fprintf(&b, "| `%s` | %s |\n", key, text)
	}
	return b.String()
}
