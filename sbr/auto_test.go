package sbr_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// Auto needs to be told what it means, and a lease that arbitrates between members that count with other
// sizes.
func TestNew_RefusesAutoWithoutALease(t *testing.T) {
	t.Parallel()
	cfg := sbr.DefaultConfig()
	cfg.StableAfter, cfg.DownAllWhenUnstable = sbr.Auto, sbr.Auto
	require.ErrorContains(t, cfg.Validate(), "stable-after is auto")
	cfg.StableFor = func(members int) time.Duration { return time.Duration(members) * time.Second }
	require.NoError(t, cfg.Validate())
	for key, refused := range map[string]bool{"keep-majority": true, "lease-majority": false} {
		s, err := strategies.New(key, strategies.DefaultSettings())
		require.NoError(t, err)
		r, err := sbr.New(cfg, s, member("n1"), 0)
		if refused {
			require.ErrorContains(t, err, "stable-after is auto")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, time.Second, r.Snapshot().StableAfter)
		require.Equal(t, 1, r.Snapshot().StableFor)
	}
}
