package downing_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/memnet"
	"github.com/serf-sbr/serf-sbr/downing/memnet/serfnet"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/memory"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// one is a single node's world, for tests of what a provider does to its node.
type single struct {
	t     *testing.T
	net   *memnet.Network
	store *memory.Store
}

// alone runs a test in virtual time. When it ends every goroutine must have ended: the bubble sees to that.
func alone(t *testing.T, f func(t *testing.T, s *single)) {
	synctest.Test(t, func(t *testing.T) {
		f(t, &single{t: t, net: memnet.New(memnet.Config{}), store: memory.NewStore()})
		time.Sleep(2 * time.Minute) // Serf's background work
	})
}

func (s *single) provider(change ...func(*downing.Config)) *downing.Provider {
	s.t.Helper()
	cfg := downing.DefaultConfig()
	cfg.System, cfg.Store = "payments", s.store.View("n1")
	cfg.Logger = slog.New(slog.DiscardHandler)
	cfg.Exit = func(int) {}
	for _, f := range change {
		f(&cfg)
	}
	p, err := downing.New(cfg)
	require.NoError(s.t, err)
	return p
}

// create prepares and creates a node, without starting the provider.
func (s *single) create(p *downing.Provider, before, after func(*serf.Config)) *serf.Serf {
	s.t.Helper()
	node, err := serfnet.Start(s.net, "n1", func(conf *serf.Config) {
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
		conf := serf.DefaultConfig()
		conf.Init()
		require.NoError(t, p.Prepare(t.Context(), conf))
		stop(t, p)
		require.ErrorIs(t, p.Start(t.Context(), nil), downing.ErrStarted)
		stop(t, p)

		p = s.provider()
		_, err := serfnet.Start(s.net, "n1", func(conf *serf.Config) {
			require.NoError(t, p.Prepare(t.Context(), conf))
			conf.ProtocolVersion = 99
		})
		require.ErrorContains(t, err, "Protocol version")
		stop(t, p)
	})
}

// Stop of a node that lives leaves the node as it is: it does not freeze, and it is not downed. Its last goroutine ends with Serf.
func TestProvider_StopWhileSerfLives(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		p := s.provider()
		node := s.create(p, nil, nil)
		require.NoError(t, p.Start(t.Context(), node))
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
	s := &single{t: t, net: memnet.New(memnet.Config{}), store: memory.NewStore()}
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
		other, err := serfnet.Start(s.net, "n2", nil)
		require.NoError(t, err)
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

// A configuration that was changed after Prepare would leave the node unprotected without a sound. Start says so.
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

// A node that does not know the last verdict must not join: Prepare waits for the store, until its ctx ends, and may be repeated.
func TestPrepare_WaitsForTheStore(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		view := s.store.View("n1")
		view.SetUnavailable(true)
		p := s.provider()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		conf := serf.DefaultConfig()
		conf.Init()
		err := p.Prepare(ctx, conf)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, memory.ErrUnavailable)
		require.ErrorContains(t, err, "must be readable before this node may join")
		require.Nil(t, conf.EventCh, "nothing was changed")

		time.AfterFunc(time.Minute, func() { view.SetUnavailable(false) })
		began := time.Now()
		node := s.create(p, nil, nil)
		require.GreaterOrEqual(t, time.Since(began), time.Minute)
		require.NoError(t, p.Start(t.Context(), node))
		require.NoError(t, node.Leave())
		s.end(p, node)
	})
}

// Stop ends a Prepare that waits for the store.
func TestPrepare_StoppedWhileItWaits(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		s.store.View("n1").LoseRequests(memory.Always)
		p := s.provider()
		conf := serf.DefaultConfig()
		conf.Init()
		failed := make(chan error)
		go func() { failed <- p.Prepare(context.Background(), conf) }()
		time.Sleep(time.Minute)
		go stop(t, p)
		require.Error(t, <-failed)
		require.Nil(t, conf.EventCh)
	})
}

// hanging is a store whose preflight answers only when its ctx ends.
type hanging struct{ *memory.View }

func (hanging) Preflight(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// A preflight that hangs is loud, but it holds nobody up for ever: what counts is the read.
func TestPrepare_PreflightHangs(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		p := s.provider(func(c *downing.Config) { c.Store = hanging{s.store.View("n1")} })
		conf := serf.DefaultConfig()
		conf.Init()
		require.NoError(t, p.Prepare(context.Background(), conf))
		stop(t, p)
	})
}

// Names that messages could not carry, and a Serf that cannot carry messages, are refused before anything is done.
func TestPrepare_RefusesWhatCannotWork(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		p := s.provider()
		for word, change := range map[string]func(*serf.Config){
			"is empty":        func(c *serf.Config) { c.NodeName = "" },
			"at most 128":     func(c *serf.Config) { c.NodeName = strings.Repeat("n", 129) },
			"UTF-8":           func(c *serf.Config) { c.NodeName = "n\xff" },
			"not begin with":  func(c *serf.Config) { c.NodeName = "?n1" },
			"ProtocolVersion": func(c *serf.Config) { c.ProtocolVersion = 3 },
		} {
			conf := serf.DefaultConfig()
			conf.Init()
			change(conf)
			require.ErrorContains(t, p.Prepare(t.Context(), conf), word)
			require.Nil(t, conf.EventCh)
		}
		require.Zero(t, s.store.View("n1").Counters().Reads)
		stop(t, p)
	})
}

// Prepare keeps what the application configured, and makes room where a long name leaves none.
func TestPrepare_KeepsTheApplicationsConfiguration(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		p := s.provider()
		require.Zero(t, p.Status())
		conf := serf.DefaultConfig()
		conf.Init()
		conf.NodeName = "n1"
		tags := map[string]string{"role": "db", downing.TagUID: "copied"}
		conf.Tags = tags
		require.NoError(t, p.Prepare(t.Context(), conf))
		require.Equal(t, "db", conf.Tags["role"])
		require.Equal(t, map[string]string{"role": "db", downing.TagUID: "copied"}, tags, "the application's own map is not touched")
		require.Equal(t, "n1#"+conf.Tags[downing.TagUID], p.Status().Incarnation)
		require.NotEqual(t, "copied", conf.Tags[downing.TagUID])
		require.Equal(t, sbr.StateArming, p.Status().State)
		require.Equal(t, conf.Tags[downing.TagConfig], p.Status().ConfigDigest)
		require.Equal(t, 1024, conf.QuerySizeLimit, "Serf's default is enough for a short name")
		stop(t, p)

		p = s.provider()
		conf = serf.DefaultConfig()
		conf.Init()
		conf.NodeName = strings.Repeat("n", 128)
		conf.QueryResponseSizeLimit = 100
		require.NoError(t, p.Prepare(t.Context(), conf))
		require.Greater(t, conf.QuerySizeLimit, 1024)
		require.Greater(t, conf.QueryResponseSizeLimit, 1024)
		stop(t, p)
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

// The resolver's tags are what the others know a member by. An application that replaces all tags does not lose them for long, and
// never in its own eyes: without the token that it read it would be out by an old verdict.
func TestTags_PutBack(t *testing.T) {
	virtual(t, nil, func(t *testing.T, c *cluster) {
		c.store.Restore(lease.Record{Token: 5, Verdict: &sbr.Verdict{Token: 5, Survivors: []sbr.ID{"n1#old"}, DecidedBy: "n1#old", Reason: "long ago"}})
		c.startAll(3)
		before := c.members["n1"].provider.Status().Incarnation
		require.NoError(t, c.members["n1"].serf.SetTags(map[string]string{}))
		time.Sleep(20 * time.Second)
		uid := c.members["n1"].serf.LocalMember().Tags[downing.TagUID]
		require.NoError(t, c.members["n1"].serf.SetTags(map[string]string{"role": "db", downing.TagUID: uid}))
		time.Sleep(20 * time.Second)
		tags := c.members["n1"].serf.LocalMember().Tags
		require.Equal(t, "db", tags["role"])
		require.Equal(t, before, "n1#"+tags[downing.TagUID])
		for name, m := range c.members {
			s := m.provider.Status()
			require.Equal(t, sbr.StateUp, s.State, name)
			require.Len(t, s.Members, 3, name)
			require.Empty(t, s.Untagged, name)
			for _, x := range s.Members {
				require.Equal(t, "up", x.Status, x.Name)
			}
		}
		require.Len(t, c.up(), 3)
	})
}

// closing is a store that wants to be closed.
type closing struct {
	lease.Store
	closed *bool
}

func (c closing) Close() error { *c.closed = true; return nil }

// A configuration names an implementation; whoever registered it is asked for the store, and Stop closes what was opened.
func TestPrepare_OpensTheImplementation(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		closed := false
		lease.Register("of-my-own", func(_ context.Context, spec lease.Spec) (lease.Store, error) {
			var set struct{ Place string }
			require.NoError(t, spec.Configure(&set))
			require.Equal(t, "here", set.Place)
			require.Equal(t, "test-sbr", spec.Name)
			require.NotEmpty(t, spec.Owner)
			require.Equal(t, lease.DefaultSettings().OperationTimeout, spec.Settings.OperationTimeout)
			return closing{s.store.View("n1"), &closed}, nil
		})
		p := s.provider(func(c *downing.Config) {
			c.Store, c.LeaseImplementation, c.LeaseName = nil, "of-my-own", "test-sbr"
			c.LeaseDecode = func(into any) error { return json.Unmarshal([]byte(`{"Place": "here"}`), into) }
		})
		conf := serf.DefaultConfig()
		conf.Init()
		require.NoError(t, p.Prepare(context.Background(), conf))
		require.NotZero(t, s.store.View("n1").Counters().Reads)
		stop(t, p)
		require.True(t, closed)
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
