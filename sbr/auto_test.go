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

// A deadline that overflows has passed at once: "for ever" would down the member with the first question.
func TestConfig_RefusesWhatWouldOverflow(t *testing.T) {
	t.Parallel()
	for key, set := range map[string]func(c *sbr.Config, d time.Duration){
		"stable-after":            func(c *sbr.Config, d time.Duration) { c.StableAfter = d },
		"down-all-when-unstable":  func(c *sbr.Config, d time.Duration) { c.DownAllWhenUnstable = d },
		"settle-after":            func(c *sbr.Config, d time.Duration) { c.SettleAfter = d },
		"release-after":           func(c *sbr.Config, d time.Duration) { c.ReleaseAfter = d },
		"suspend-timeout":         func(c *sbr.Config, d time.Duration) { c.SuspendTimeout = d },
		"lease-operation-timeout": func(c *sbr.Config, d time.Duration) { c.LeaseTimeout, c.LeaseDeadline = d, d+1 },
		"lease-deadline":          func(c *sbr.Config, d time.Duration) { c.LeaseDeadline = 10 * d },
		"lease-retry":             func(c *sbr.Config, d time.Duration) { c.LeaseRetry = d },
		"holder-retry":            func(c *sbr.Config, d time.Duration) { c.HolderRetry = d },
	} {
		cfg := sbr.DefaultConfig()
		set(&cfg, sbr.MaxDuration)
		require.NoError(t, cfg.Validate(), key)
		set(&cfg, sbr.MaxDuration+1)
		require.ErrorContains(t, cfg.Validate(), key+" is ", key)
	}
}
