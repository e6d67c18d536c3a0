package reachability

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// A single cut link between two members that are no neighbours on the ring of one of them: the reported
// member looks for its reporter, or the pair would miss each other for ever, and neither would know.
func TestTracker_LooksForWhoeverReportsIt(t *testing.T) {
	tr := New(DefaultSettings(), "self")
	var all []sbr.ID
	for i := range 6 {
		all = append(all, sbr.ID(fmt.Sprintf("n%d", i)))
		tr.Add(all[i])
	}
	far := all[slices.IndexFunc(all, func(id sbr.ID) bool { return !slices.Contains(tr.Probes(), id) })]
	noticed := false
	for round := range 10 {
		now := time.Duration(round) * time.Second
		tr.Reported(now, far, 0, []sbr.ID{"self"}, nil)
		for _, id := range tr.Probes() {
			tr.Probed(id, id != far)
		}
		noticed = noticed || slices.ContainsFunc(tr.Form(now, false).Changed,
			func(c sbr.Reachability) bool { return c.ID == far && c.Unreachable })
	}
	require.True(t, noticed)
}
