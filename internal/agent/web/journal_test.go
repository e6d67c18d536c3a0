package web

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func TestJournal_IsBounded(t *testing.T) {
	var j Journal
	require.Empty(t, j.Entries())
	for i := range 10_000 {
		kind := "told"
		if i%100 == 0 {
			kind = downing.OccurredVerdict
		}
		j.Record(downing.Occurrence{Kind: kind, Text: fmt.Sprint(i)})
	}
	all := j.Entries()
	require.LessOrEqual(t, len(all), keepEntries+keepVerdicts)
	verdicts := 0
	for i, e := range all {
		require.Equal(t, fmt.Sprint(e.ID-1), e.Text)
		if i > 0 {
			require.Greater(t, e.ID, all[i-1].ID, "oldest first, each once")
		}
		if e.Kind == downing.OccurredVerdict {
			verdicts++
		}
	}
	require.Equal(t, keepVerdicts, verdicts, "a noisy night does not push them out")
	require.EqualValues(t, 10_000, all[len(all)-1].ID)
	require.LessOrEqual(t, cap(j.entries), 2*keepEntries)
}

func TestJournal_SharesNothing(t *testing.T) {
	var j Journal
	v := &sbr.Verdict{Token: 1, Down: []sbr.ID{"n2#a"}}
	j.Record(downing.Occurrence{Kind: downing.OccurredVerdict, Verdict: v})
	v.Down[0] = "n1#b"
	before := j.Entries()
	j.Record(downing.Occurrence{Kind: "told"})
	require.Equal(t, sbr.ID("n2#a"), before[0].Verdict.Down[0])
	require.Len(t, before, 1)
}

func TestJournal_Concurrently(t *testing.T) {
	var j Journal
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				j.Record(downing.Occurrence{Kind: "told"})
				j.Entries()
			}
		})
	}
	wg.Wait()
	all := j.Entries()
	require.EqualValues(t, 2000, all[len(all)-1].ID)
}
