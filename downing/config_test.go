package downing_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func validConfig() downing.Config {
	cfg := downing.DefaultConfig()
	cfg.System = "payments"
	cfg.Store = leasetest.NewMemory().View("n1")
	cfg.Logger = slog.New(slog.DiscardHandler)
	return cfg
}

// The defaults lack only what nobody can guess: the name of the system and where the lease is.
func TestConfig_Defaults(t *testing.T) {
	cfg := validConfig()
	require.NoError(t, cfg.Validate())
	cfg = downing.DefaultConfig()
	err := cfg.Validate()
	require.ErrorContains(t, err, "system is empty")
	require.ErrorContains(t, err, "set Store")
	_, err = downing.New(cfg)
	require.ErrorContains(t, err, "system is empty", "New checks as well")
}

// A store is needed by those strategies only that ask a lease.
func TestConfig_StoreOnlyWhereALeaseIsNeeded(t *testing.T) {
	for _, strategy := range []string{"keep-majority", "keep-oldest", "down-all"} {
		cfg := validConfig()
		cfg.Strategy, cfg.Store = strategy, nil
		require.NoError(t, cfg.Validate(), strategy)
	}
	cfg := validConfig()
	cfg.Store = nil
	require.ErrorContains(t, cfg.Validate(), "lease-majority needs a lease")
}

// Every problem is reported at once, in the words of the configuration.
func TestConfig_EveryProblemAtOnce(t *testing.T) {
	cfg := validConfig()
	cfg.PollInterval, cfg.PauseAfter, cfg.TellFor, cfg.Grace = 0, -1, 0, 0
	cfg.Resolver.StableAfter = -time.Second
	cfg.Probe.Tries = 0
	cfg.Lease.OperationTimeout = 0
	cfg.Strategy = "keep-minority"
	err := cfg.Validate()
	for _, word := range []string{"PollInterval is 0s", "PauseAfter is -1ns", "TellFor is 0s", "Grace is 0s",
		"stable-after is -1s", "probe.tries is 0", "lease-operation-timeout is 0s", "keep-minority"} {
		require.ErrorContains(t, err, word)
	}
}

// The digest differs when members would decide differently, and only then.
func TestConfig_Digest(t *testing.T) {
	base := validConfig()
	require.Len(t, base.Digest(), 8)
	for name, change := range map[string]func(*downing.Config){
		"system":               func(c *downing.Config) { c.System = "billing" },
		"strategy":             func(c *downing.Config) { c.Strategy = "keep-majority" },
		"a strategy's setting": func(c *downing.Config) { c.Strategies.LeaseMajority.Role = "db" },
		"stable-after":         func(c *downing.Config) { c.Resolver.StableAfter++ },
		"unstable":             func(c *downing.Config) { c.Resolver.DownAllWhenUnstable = 0 },
		"indirect":             func(c *downing.Config) { c.Resolver.DownAllWhenIndirectlyConnected = 1 },
		"release-after":        func(c *downing.Config) { c.Resolver.ReleaseAfter++ },
		"when unknown":         func(c *downing.Config) { c.Resolver.WhenLeaseUnknown = sbr.UnknownSuspend },
		"lease name":           func(c *downing.Config) { c.LeaseName = "other" },
		"heartbeat-timeout":    func(c *downing.Config) { c.Lease.HeartbeatTimeout *= 2 },
	} {
		cfg := base
		change(&cfg)
		require.NotEqual(t, base.Digest(), cfg.Digest(), name)
	}
	for name, change := range map[string]func(*downing.Config){
		"nothing":            func(*downing.Config) {},
		"each its own store": func(c *downing.Config) { c.Store = leasetest.NewMemory().View("n2") },
		"how it ends":        func(c *downing.Config) { c.Grace, c.Exit = time.Hour, func(int) {} },
		"who watches":        func(c *downing.Config) { c.Logger, c.Observe = nil, func(downing.Occurrence) {} },
		"the default, named": func(c *downing.Config) { c.LeaseName = "payments-sbr" },
		"another case":       func(c *downing.Config) { c.Strategy = "Lease-Majority" },
	} {
		cfg := base
		change(&cfg)
		require.Equal(t, base.Digest(), cfg.Digest(), name)
	}
}

// An unknown provider is an error that names the known ones.
func TestNew_UnknownProvider(t *testing.T) {
	_, err := downing.New(downing.Config{Provider: "split-brain-resolvr"})
	require.ErrorContains(t, err, `"split-brain-resolvr": known are none and split-brain-resolver`)
	_, err = downing.New(downing.Config{})
	require.ErrorContains(t, err, `""`, "the zero Config names none")
}

// The provider "none" needs nothing, changes nothing and downs nobody.
func TestNew_None(t *testing.T) {
	p, err := downing.New(downing.Config{Provider: downing.NoDowning})
	require.NoError(t, err)
	conf := serf.DefaultConfig()
	require.NoError(t, p.Prepare(t.Context(), conf))
	require.Nil(t, conf.EventCh)
	require.Nil(t, conf.Merge)
	require.Empty(t, conf.Tags)
	require.NoError(t, p.Start(t.Context(), nil))
	require.Equal(t, "none", string(p.Status().State))
	require.NoError(t, p.Stop(t.Context()))
	select {
	case <-p.Downed():
		t.Fatal("it downed somebody")
	default:
	}
	require.Empty(t, p.Reason())
}
