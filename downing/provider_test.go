package downing_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/memnet/serfnet"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// single is a cluster of a single node, for tests of what a provider does to its node.
type single struct {
	*clustertest.Cluster
	t testing.TB
}

func newSingle(t testing.TB) *single { return &single{clustertest.New(t, clustertest.Options{}), t} }

// alone runs a test in virtual time. When it ends every goroutine must have ended: the bubble sees to that.
func alone(t *testing.T, f func(t *testing.T, s *single)) {
	synctest.Test(t, func(t *testing.T) {
		f(t, newSingle(t))
		clustertest.Drain()
	})
}

func (s *single) provider(change ...func(*downing.Config)) *downing.Provider {
	s.t.Helper()
	return s.NewMember("n1", change...).Provider
}

// create prepares and creates a node, without starting the provider.
func (s *single) create(p *downing.Provider, before, after func(*serf.Config)) *serf.Serf {
	s.t.Helper()
	node, err := serfnet.Start(s.Net, "n1", func(conf *serf.Config) {
		if before != nil {
			before(conf)
		}
		require.NoError(s.t, p.Prepare(context.Background(), conf))
		if after != nil {
			after(conf)
		}
	})
	require.NoError(s.t, err)
	return node
}

// started is a node with its provider, both of which run.
func (s *single) started(change ...func(*downing.Config)) (*downing.Provider, *serf.Serf) {
	s.t.Helper()
	p := s.provider(change...)
	node := s.create(p, nil, nil)
	require.NoError(s.t, p.Start(s.t.Context(), node))
	return p, node
}

// serfConfig is a configuration as an application has it before it creates its node.
func serfConfig() *serf.Config {
	conf := serf.DefaultConfig()
	conf.Init()
	return conf
}

// end shuts a node down and stops its provider.
func (s *single) end(p *downing.Provider, node *serf.Serf) {
	s.t.Helper()
	require.NoError(s.t, node.Shutdown())
	stop(s.t, p)
}

func stop(t testing.TB, p *downing.Provider) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(t, p.Stop(ctx))
}

func isDown(p *downing.Provider) bool {
	select {
	case <-p.Downed():
		return true
	default:
		return false
	}
}

// requireAlive requires that Serf neither blocks nor forgets: its locks are held while it sends events.
func requireAlive(t testing.TB, node *serf.Serf) {
	t.Helper()
	for range 3000 { // more than all of Serf's buffers
		require.NoError(t, node.UserEvent("e", nil, false))
	}
	require.NotEmpty(t, node.Members())
}

// Prepare, Start, Stop: each once, in this order.
func TestProvider_CallsOutOfOrder(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		p := s.provider()
		require.ErrorIs(t, p.Start(t.Context(), nil), downing.ErrNotPrepared)
		node := s.create(p, nil, nil)
		require.ErrorIs(t, p.Prepare(t.Context(), serf.DefaultConfig()), downing.ErrStarted)
		require.NoError(t, p.Start(t.Context(), node))
		require.ErrorIs(t, p.Start(t.Context(), node), downing.ErrStarted)
		require.NoError(t, node.Leave())
		s.end(p, node)
		require.ErrorIs(t, p.Prepare(t.Context(), serf.DefaultConfig()), downing.ErrStarted)
		require.ErrorIs(t, p.Start(t.Context(), node), downing.ErrStarted)
		require.False(t, isDown(p))
	})
}

// Stop is right at every moment, and any number of times.
func TestProvider_StopBeforeThereIsANode(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		p := s.provider()
		stop(t, p)
		stop(t, p)

		p = s.provider()
		conf := serfConfig()
		require.NoError(t, p.Prepare(t.Context(), conf))
		stop(t, p)
		require.ErrorIs(t, p.Start(t.Context(), nil), downing.ErrStarted)
		stop(t, p)

		p = s.provider()
		_, err := serfnet.Start(s.Net, "n1", func(conf *serf.Config) {
			require.NoError(t, p.Prepare(t.Context(), conf))
			conf.ProtocolVersion = 99
		})
		require.ErrorContains(t, err, "Protocol version")
		stop(t, p)
	})
}

// Stop of a node that lives leaves the node as it is: it does not freeze, and it is not downed. Its last
// goroutine ends with Serf.
func TestProvider_StopWhileSerfLives(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		p, node := s.started()
		time.Sleep(10 * time.Second)
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { stop(t, p) })
		}
		all.Wait()
		requireAlive(t, node)
		require.False(t, isDown(p))
		require.NoError(t, node.Shutdown())
		time.Sleep(time.Minute)
		require.False(t, isDown(p), "nobody watches it any more")
		stop(t, p)
	})
}

// A node that was created but never given to Start does not freeze when its provider is stopped.
func TestProvider_StopBetweenCreateAndStart(t *testing.T) {
	s := newSingle(t)
	p := s.provider()
	node := s.create(p, nil, nil)
	stop(t, p)
	requireAlive(t, node)
	require.NoError(t, node.Shutdown())
}

// A Start that fails can be repeated, and stopped.
func TestProvider_StartFails(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		p := s.provider()
		node := s.create(p, nil, nil)
		other := s.Node("n2", nil)
		require.ErrorIs(t, p.Start(t.Context(), other), downing.ErrNotPrepared, "another node")
		require.NoError(t, other.Shutdown())
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, p.Start(ended, node), context.Canceled)
		require.NoError(t, p.Start(t.Context(), node))
		require.NoError(t, node.Leave())
		s.end(p, node)
	})
	alone(t, func(t *testing.T, s *single) {
		p := s.provider()
		node := s.create(p, nil, nil)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.Error(t, p.Start(ended, node))
		stop(t, p)
		requireAlive(t, node)
		require.NoError(t, node.Shutdown())
	})
}

// A configuration that was changed after Prepare would leave the node unprotected without a sound. Start says
// so.
func TestProvider_ConfigurationChangedAfterPrepare(t *testing.T) {
	for what, change := range map[string]func(*serf.Config){
		"tags":    func(c *serf.Config) { c.Tags = map[string]string{"role": "db"} },
		"Merge":   func(c *serf.Config) { c.Merge = nil },
		"EventCh": func(c *serf.Config) { c.EventCh = make(chan serf.Event, 64) },
	} {
		t.Run(what, func(t *testing.T) {
			alone(t, func(t *testing.T, s *single) {
				p := s.provider()
				node := s.create(p, nil, change)
				err := p.Start(t.Context(), node)
				require.ErrorIs(t, err, downing.ErrNotPrepared)
				require.ErrorContains(t, err, what)
				s.end(p, node)
			})
		})
	}
}

// Event coalescing delays a node's first event, and that is no reason to refuse it.
func TestProvider_CoalescedEvents(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		p := s.provider()
		node := s.create(p, func(c *serf.Config) { c.CoalescePeriod, c.QuiescentPeriod = 30*time.Second, 10*time.Second }, nil)
		require.NoError(t, p.Start(t.Context(), node))
		time.Sleep(10 * time.Second)
		require.Equal(t, sbr.StateUp, p.Status().State)
		require.NoError(t, node.Leave())
		s.end(p, node)
	})
}

// A member can be stopped once it is down, also by its own callback, and everything of it ends.
func TestProvider_StopAfterDowned(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		p := s.provider()
		node := s.create(p, nil, nil)
		p.OnDown(func(string) { stop(t, p) })
		require.NoError(t, p.Start(t.Context(), node))
		require.NoError(t, node.Shutdown())
		<-p.Done()
		stop(t, p)
		require.Equal(t, sbr.StateDown, p.Status().State)
		require.Contains(t, p.Reason(), "shut down under it")
	})
}

// F1: Serf was gone before anybody watched it.
func TestFailSafe_SerfClosedBeforeStart(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		p := s.provider()
		node := s.create(p, nil, nil)
		require.NoError(t, node.Shutdown())
		require.NoError(t, p.Start(t.Context(), node))
		<-p.Done()
		stop(t, p)
	})
}

// A leave is not a downing, however quickly the application shuts Serf down after it.
func TestLeave_IsNotADowning(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		p := s.provider(func(c *downing.Config) { c.PollInterval = time.Minute })
		node := s.create(p, func(c *serf.Config) { c.LeavePropagateDelay = 0 }, nil)
		require.NoError(t, p.Start(t.Context(), node))
		time.Sleep(time.Second)
		require.NoError(t, node.Leave())
		s.end(p, node)
		time.Sleep(time.Minute)
		require.False(t, isDown(p))
	})
}

// The resolver's tags are what the others know a member by. An application that replaces all tags does not
// lose them for long, and never in its own eyes: without the token that it read it would be out by an old
// verdict.
func TestTags_PutBack(t *testing.T) {
	virtual(t, nil, func(t *testing.T, c *cluster) {
		c.Store.Restore(lease.Record{Token: 5, Verdict: &sbr.Verdict{Token: 5, Survivors: []sbr.ID{"n1#old"},
			DecidedBy: "n1#old", Reason: "long ago"}})
		c.Form(3)
		before := c.provider("n1").Status().Incarnation
		set := func(tags map[string]string) {
			// Of two updates at once, this one and the provider's, memberlist drops the older one and lets it
			// wait. The tags are set all the same.
			if err := c.Member("n1").Serf.SetTags(tags); err != nil {
				require.ErrorContains(t, err, "timeout waiting for update broadcast")
			}
			time.Sleep(20 * time.Second)
		}
		set(map[string]string{})
		uid := c.Member("n1").Serf.LocalMember().Tags[downing.TagUID]
		set(map[string]string{"role": "db", downing.TagUID: uid})
		tags := c.Member("n1").Serf.LocalMember().Tags
		require.Equal(t, "db", tags["role"])
		require.Equal(t, before, "n1#"+tags[downing.TagUID])
		for _, m := range c.Members() {
			name := m.Name
			s := m.Provider.Status()
			require.Equal(t, sbr.StateUp, s.State, name)
			require.Len(t, s.Members, 3, name)
			require.Empty(t, s.Untagged, name)
			for _, x := range s.Members {
				require.Equal(t, "up", x.Status, x.Name)
			}
		}
		require.Len(t, c.Up(), 3)
	})
}

func TestConfig_NamesTheKnownImplementations(t *testing.T) {
	cfg := downing.DefaultConfig()
	cfg.System, cfg.LeaseImplementation = "payments", "etcd"
	err := cfg.Validate()
	require.ErrorIs(t, err, lease.ErrUnknownImplementation)
	require.ErrorContains(t, err, `"etcd"`)
	cfg.LeaseImplementation = ""
	require.ErrorContains(t, cfg.Validate(), "set Store or LeaseImplementation")
}
