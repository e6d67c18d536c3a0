package downing_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/memory"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// A node that does not know the last verdict must not join: Prepare waits for the store, until its ctx ends, and may be repeated.
func TestPrepare_WaitsForTheStore(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		view := s.Store.View("n1")
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
		s.Store.View("n1").LoseRequests(memory.Always)
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
		p := s.provider(func(c *downing.Config) { c.Store = hanging{s.Store.View("n1")} })
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
		require.Zero(t, s.Store.View("n1").Counters().Reads)
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
			return closing{s.Store.View("n1"), &closed}, nil
		})
		p := s.provider(func(c *downing.Config) {
			c.Store, c.LeaseImplementation, c.LeaseName = nil, "of-my-own", "test-sbr"
			c.LeaseDecode = func(into any) error { return json.Unmarshal([]byte(`{"Place": "here"}`), into) }
		})
		conf := serf.DefaultConfig()
		conf.Init()
		require.NoError(t, p.Prepare(context.Background(), conf))
		require.NotZero(t, s.Store.View("n1").Counters().Reads)
		stop(t, p)
		require.True(t, closed)
	})
}
