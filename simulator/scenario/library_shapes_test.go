package scenario

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each shape that the project promises to show has its files, so that nobody deletes one unseen. A shape is what a person would call it.
func TestLibrary_HasEveryShape(t *testing.T) {
	all := library(t)
	for _, shape := range []struct {
		name  string
		files []string
	}{
		{"halves", []string{"halves", "two-nodes", "strategy-keep-majority-tie"}},
		{"larger against smaller side", []string{"three-two", "twenty-nodes", "no-minority-delay"}},
		{"lone node", []string{"lone-node", "lone-node-unwatched", "stable-after-short", "release-after-zero"}},
		{"three-way", []string{"three-way", "zones-all-apart", "strategy-keep-majority-three-way"}},
		{"seven-way", []string{"seven-way"}},
		{"bridge", []string{"bridge", "star", "chain", "asymmetric"}},
		{"ring of majorities", []string{"ring-of-majorities"}},
		{"missing link", []string{"missing-link", "missing-link-unseen"}},
		{"one-way", []string{"one-way-cut", "one-way-sides", "deaf-node", "mute-node"}},
		{"flapping faster than stable-after", []string{"flapping", "flapping-link", "flapping-for-long", "splits-within-stable-after"}},
		{"swizzle", []string{"swizzle", "swizzle-slow"}},
		{"rolling update", []string{"rolling-update-while-whole", "rolling-update-during-split", "rolling-update-by-force"}},
		{"second split while the lease is held", []string{"second-split", "takeover-from-own-side", "holder-loses-store"}},
		{"cascading splits", []string{"cascading-splits"}},
		{"healed before the decision", []string{"healed-in-time", "heal-just-before", "healed-while-suspended"}},
		{"healed after the verdict", []string{"heal-just-after", "healed-after-an-hour"}},
		{"split again after a heal", []string{"split-again-after-heal", "split-again-after-verdict"}},
		{"holder dies after the verdict", []string{"holder-crashes", "orphaned-lease", "orphaned-lease-infinite", "followers-without-store"}},
		{"leader dies before it decides", []string{"leader-dies-before-deciding", "leader-dies-while-asking"}},
		{"leader without the store", []string{"leader-without-store", "store-loses-requests", "one-member-with-store"}},
		{"store reachable from one side", []string{"store-down-for-majority", "store-down-for-minority", "zone-with-store", "two-nodes-store-for-one"}},
		{"store reachable from nobody", []string{"store-down-for-all", "store-down-suspend", "store-down-suspend-timeout", "crash-while-suspended"}},
		{"store down while nothing happens", []string{"store-down-while-whole"}},
		{"store slow", []string{"store-slow", "store-slower-than-timeout", "store-slow-for-majority"}},
		{"store comes and goes", []string{"store-flaps", "store-back-during-deadline", "holder-misses-heartbeats"}},
		{"lost answers", []string{"store-loses-answers", "winner-loses-answer", "store-loses-all-answers", "store-loses-all-answers-unwatched"}},
		{"conflicts", []string{"store-conflicts", "store-conflict-storm"}},
		{"two-node cluster", []string{"two-nodes", "two-nodes-crash", "two-nodes-store-for-one"}},
		{"one-node cluster", []string{"one-node"}},
		{"paused through everything", []string{"paused-through", "downed-comes-back", "downed-without-store-comes-back"}},
		{"paused leader", []string{"paused-leader", "paused-while-asking", "paused-while-holding"}},
		{"paused while nothing is cut", []string{"paused-briefly", "paused-alone", "paused-everybody"}},
		{"clocks", []string{"clocks", "clocks-of-holder", "clocks-skewed-restart"}},
		{"restart under the same name", []string{"restart-same-name", "restart-during-split", "restart-while-cut"}},
		{"crash", []string{"crash-while-whole", "crash-all-but-one", "crash-and-cut", "zone-crashes"}},
		{"join", []string{"join-during-split", "join-winning-side", "join-makes-no-majority", "join-after-verdict"}},
		{"leave", []string{"leave-during-split", "leader-leaves-during-split", "leave-makes-minority"}},
		{"zones", []string{"zones", "zones-all-apart", "zone-with-store", "zone-crashes"}},
		{"roles", []string{"strategy-lease-majority-role", "strategy-keep-majority-role"}},
		{"keep-majority", []string{"strategy-keep-majority", "strategy-keep-majority-tie", "strategy-keep-majority-three-way"}},
		{"static-quorum", []string{"strategy-static-quorum", "strategy-static-quorum-both-below", "strategy-static-quorum-too-small", "strategy-static-quorum-grown"}},
		{"keep-oldest", []string{"strategy-keep-oldest", "strategy-keep-oldest-alone", "strategy-keep-oldest-alone-kept", "strategy-keep-oldest-crashed"}},
		{"keep-referee", []string{"strategy-keep-referee", "strategy-keep-referee-gone", "strategy-keep-referee-too-few"}},
		{"down-all", []string{"strategy-down-all", "strategy-down-all-crash"}},
		{"without watch or probes", []string{"unwatched", "without-probes", "lone-node-unwatched"}},
		{"Serf's profiles", []string{"profile-wan", "profile-local"}},
		{"orphaned lease", []string{"orphaned-lease", "orphaned-lease-any-moment", "orphaned-lease-reaped"}},
		{"infinite heartbeat-timeout", []string{"heartbeat-infinite", "orphaned-lease-infinite"}},
		{"start", []string{"forming", "cut-while-settling"}},
		{"force-leave", []string{"force-leave-both-sides", "force-leave-healed", "force-leave-store-away", "force-leave-lone"}},
		{"an operator's word", []string{
			"operator-downs-while-whole", "operator-downs-during-split", "operator-downs-lone-suspect", "operator-downs-any-time",
		}},
		{"Serf forgets failed members", []string{"reaped-at-once", "reaped-while-suspended", "orphaned-lease-reaped"}},
		{"another life", []string{"restart-other-name", "restart-state-lost", "second-life"}},
		{"record deleted or restored", []string{
			"store-deleted-before-verdict", "store-restored-same-verdict", "store-restored-after-verdict", "store-forgets-unheard",
			"store-deleted-then-joins", "store-restored-rolling-restart", "store-two-verdicts-one-token",
		}},
		{"settings that differ", []string{"settings-differ", "settings-differ-strategy"}},
		{"rights taken away", []string{"rights-revoked"}},
		{"links", []string{"link-between-zones"}},
	} {
		for _, file := range shape.files {
			require.NotNil(t, all[file], "the shape %q has lost %s", shape.name, file)
		}
	}
}
