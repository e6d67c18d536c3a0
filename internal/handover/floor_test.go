package handover_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	"github.com/serf-sbr/serf-sbr/internal/slot"
)

// All members have gone down together, without a verdict: nobody remembers the tokens of the former life.
func TestToken_OfALaterLifeIsLarger(t *testing.T) {
	for _, bits := range []int{29, 40} {
		first := func(started time.Time, verdict uint64) uint64 {
			cfg := handover.DefaultConfig()
			cfg.Self, cfg.Born, cfg.CounterBits, cfg.Floor = "a", 1, bits, handover.FloorAt(started.Unix(), bits)
			m := handover.New(cfg, 0)
			m.Step(0, slot.Viewed{View: slot.View{Armed: true, Verdict: verdict, Peers: []slot.Peer{{ID: "a", Born: 1, Candidate: true}}}})
			require.Equal(t, slot.Active, m.Phase())
			return m.Token()
		}
		then := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
		require.Less(t, first(then, 0), first(then.Add(time.Minute), 0))
		require.Less(t, first(then.AddDate(60, 0, 0), 7), first(then, 8), "a verdict counts more than any clock")
		require.Zero(t, handover.FloorAt(0, bits), "a clock that was never set")
		require.Less(t, handover.FloorAt(time.Date(2093, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), bits), uint64(1)<<bits)
	}
}
