package downing_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/agentrpc"
	"github.com/serf-sbr/serf-sbr/internal/probe"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/test/serftest"
)

// realTime bounds what is awaited in real time, on a machine that is busy with other things.
const realTime = time.Minute

// host is a stock agent with a provider beside it, as on a host of its own.
type host struct {
	agent    *serftest.Agent
	provider *downing.Provider
	exited   chan int
}

// start starts a provider beside the agent, with all that a process of its own has.
func (h *host) start(t *testing.T, store *leasetest.Memory, change func(*downing.Config)) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil)).With("node", h.agent.Node())
	exited := make(chan int, 1)
	cfg := downing.DefaultConfig()
	quick(&cfg)
	cfg.System, cfg.Store, cfg.Logger = "payments", store.View(h.agent.Node()), log
	cfg.Resolver.StableAfter, cfg.Resolver.ReleaseAfter = 5*time.Second, time.Second
	cfg.AgentTimeout, cfg.TellFor = 4*time.Second, 2*time.Second
	cfg.PauseAfter = realTime // a busy machine is no pause
	cfg.Exit = func(status int) { exited <- status }
	if change != nil {
		change(&cfg)
	}
	p, err := downing.New(cfg)
	require.NoError(t, err)
	o := agentrpc.DefaultOptions()
	o.Addr, o.Logger = h.agent.RPC(), log
	agent, err := agentrpc.New(o)
	require.NoError(t, err)
	prober, err := probe.Listen(probe.Options{Addr: "127.0.0.1:0", Logger: log})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, p.Stop(ctx))
		agent.Close()
		prober.Close()
	})
	ctx, cancel := context.WithTimeout(t.Context(), realTime)
	defer cancel()
	require.NoError(t, p.Beside(ctx, agent, prober))
	h.provider, h.exited = p, exited
}

// serfSays is what this host's agent lists, asked over a connection of its own.
func (h *host) serfSays(t *testing.T, name string) string {
	t.Helper()
	c, err := h.agent.Dial()
	require.NoError(t, err)
	defer c.Close()
	members, err := c.Members()
	require.NoError(t, err)
	for _, m := range members {
		if m.Name == name {
			return m.Status
		}
	}
	return ""
}

func soon(t *testing.T, what string, check func() bool) {
	t.Helper()
	require.Eventually(t, check, realTime, 20*time.Millisecond, what)
}

func whole(t *testing.T, hosts []*host) {
	t.Helper()
	soon(t, "all are up and see each other", func() bool {
		for _, h := range hosts {
			s := h.provider.Status()
			if s.State != sbr.StateUp || len(s.Members) != len(hosts) || len(s.Unreachable) > 0 ||
				len(s.Untagged) > 0 {
				return false
			}
		}
		return true
	})
}

// One of three stock agents is stopped. The member beside it is down within the bound, the other two remove
// it, and when all is over and it comes back, it is a new incarnation.
func TestBeside_StockAgents(t *testing.T) {
	serftest.EachFlavour(t, func(t *testing.T, flavour serftest.Flavour) {
		before := goleak.IgnoreCurrent()
		t.Cleanup(func() { goleak.VerifyNone(t, before) })
		store := leasetest.NewMemory()
		var hosts []*host
		for i := range 3 {
			o := serftest.Options{Flavour: flavour, Node: fmt.Sprintf("n%d", i+1), Profile: "local"}
			if i > 0 {
				o.Join = []string{hosts[0].agent.Bind()}
			}
			h := &host{agent: serftest.Start(t, o)}
			h.start(t, store, nil)
			hosts = append(hosts, h)
		}
		whole(t, hosts)

		n3 := hosts[2]
		incarnation := n3.provider.Status().Incarnation
		stopped := time.Now()
		n3.agent.Stop()
		soon(t, "it is suspended", func() bool { return n3.provider.Status().State == sbr.StateSuspended })
		require.Less(t, time.Since(stopped), 10*time.Second)
		<-n3.provider.Downed()
		require.Less(t, time.Since(stopped), 15*time.Second, "2 s until it is noticed, and 4 s of patience")
		require.Contains(t, n3.provider.Reason(), "the Serf agent did not answer for 4s")
		for _, h := range hosts[:2] {
			soon(t, "it is removed", func() bool {
				return len(h.provider.Status().Members) == 2 && h.serfSays(t, "n3") == serf.StatusLeft.String() &&
					h.provider.Status().State == sbr.StateUp
			})
			require.NotEqual(t, sbr.StateDown, h.provider.Status().State)
		}
		require.Equal(t, downing.ExitDowned, <-n3.exited)

		n3.agent.Continue()
		n3.start(t, store, func(c *downing.Config) {
			dir := t.TempDir()
			left := []byte(`{"incarnation": "` + incarnation + `", "over": true}`)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "payments.json"), left, 0o600))
			c.Memory = downing.NewMemory(dir, "payments")
			require.NoError(t, c.Memory.Open())
			t.Cleanup(func() { _ = c.Memory.Close() })
		})
		require.NotEqual(t, incarnation, n3.provider.Status().Incarnation)
		whole(t, hosts)
		require.Equal(t, uint64(1), hosts[0].provider.Status().Verdict.Token, "nothing else was decided")
	})
}
