package world

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A member that cannot arm, and that nothing ever told its fate, does not break S2; a member that could know
// it does.
func TestStaysDown_WhoWasNeverTold(t *testing.T) {
	const start, restart, cut, end = time.Minute, 3 * time.Minute, 4 * time.Minute, 8 * time.Minute
	for name, tc := range map[string]struct {
		change func(w *World)
		broken bool
	}{
		"cut off":                   {func(*World) {}, false},
		"cut off, but it watches":   {func(w *World) { w.rules.Resolver.Watched = true }, true},
		"reached by one who knows":  {(*World).Heal, true},
		"cut off, but it could arm": {func(w *World) { w.rules.Resolver.MinMembers = 2 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := smallest(t, 3)
			w.At(start, w.Nodes()[0].Crash)
			w.At(2*start, w.Nodes()[2].Crash)
			w.At(restart, w.Nodes()[2].Restart)
			w.At(cut, func() { w.Partition([]int{1}, []int{2}) })
			w.Run(end)
			tc.change(w)
			(&staysDown{}).rested(w)
			if !tc.broken {
				require.Empty(t, w.Violations(), w.Story())
				return
			}
			require.Len(t, w.Violations(), 1, w.Story())
			require.Equal(t, "S2 broken at 480.000s: n3#2 is up although the last verdict (3) leaves it out", w.Violations()[0].String())
		})
	}
}
