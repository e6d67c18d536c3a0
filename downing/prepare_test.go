package downing_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// A node that does not know the last verdict must not join: Prepare waits for the store, until its ctx ends,
// and may be repeated.
func TestPrepare_WaitsForTheStore(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		view := s.Store.View("n1")
		view.SetUnavailable(true)
		p := s.provider()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		conf := serfConfig()
		err := p.Prepare(ctx, conf)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, leasetest.ErrInjected)
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
		s.Store.View("n1").Inject(leasetest.All, leasetest.LoseRequest, leasetest.Always)
		p := s.provider()
		conf := serfConfig()
		failed := make(chan error)
		go func() { failed <- p.Prepare(context.Background(), conf) }()
		time.Sleep(time.Minute)
		go stop(t, p)
		require.Error(t, <-failed)
		require.Nil(t, conf.EventCh)
	})
}

// hanging is a store whose preflight answers only when its ctx ends.
type hanging struct{ *leasetest.Faulty }

func (hanging) Preflight(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// A preflight that hangs is loud, but it holds nobody up for ever: what counts is the read.
func TestPrepare_PreflightHangs(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		view, log := s.Store.View("n1"), new(logtest.Log)
		p := s.provider(func(c *downing.Config) {
			c.Store, c.Logger = hanging{view}, slog.New(slog.NewTextHandler(log, nil))
		})
		view.SetUnavailable(true)
		time.AfterFunc(time.Minute, func() { view.SetUnavailable(false) })
		conf := serfConfig()
		require.NoError(t, p.Prepare(context.Background(), conf))
		require.Empty(t, log.With("the lease can be used"), "that is not known")
		require.Len(t, log.With("the lease can be read, so the start goes on; but"), 1)
		stop(t, p)
	})
}

// guarded is a store that refuses this member while refusal is set.
type guarded struct {
	*leasetest.Faulty
	refusal atomic.Pointer[error]
	asked   atomic.Int64
}

func (g *guarded) Preflight(context.Context) error {
	g.asked.Add(1)
	if e := g.refusal.Load(); e != nil {
		return *e
	}
	return nil
}

func (g *guarded) DryRun(ctx context.Context) error { return g.Preflight(ctx) }

func (g *guarded) refuse(err error) {
	g.refusal.Store(nil)
	if err != nil {
		g.refusal.Store(&err)
	}
}

// busy is an error of a store that wants to be left alone.
type busy struct{ error }

func (b busy) Unwrap() error           { return b.error }
func (busy) RetryAfter() time.Duration { return 40 * time.Second }

// Rule 21: rights and credentials that are refused are waited for, loudly, and once they are back the start
// goes on by itself.
func TestPrepare_WaitsForRights(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		g, log := &guarded{Faulty: s.Store.View("n1")}, new(logtest.Log)
		p := s.provider(func(c *downing.Config) { c.Store, c.Logger = g, log.Warnings() })
		var told []string
		p.OnSuspend(func(why string) { told = append(told, "suspend: "+why) })
		p.OnResume(func(string) { told = append(told, "resume") })
		g.refuse(fmt.Errorf("%w: 403 for request 17\nno right to watch", lease.ErrRefused))
		began := time.Now()
		time.AfterFunc(time.Hour, func() { g.refuse(fmt.Errorf("%w: 401", lease.ErrRefused)) })
		time.AfterFunc(90*time.Minute, func() { g.refuse(nil) })
		time.AfterFunc(time.Minute, func() {
			st := p.Status()
			assert.Equal(t, downing.StateStarting, st.State)
			assert.Contains(t, st.StartingBecause,
				"payments-sbr cannot be used: the store refused the request: 403 for request 17; no right to watch")
			assert.Equal(t, "store", st.Lease.Kind)
			assert.Contains(t, st.Lease.Refused, "403")
			g.refuse(fmt.Errorf("%w: 403 for request 18\nno right to watch", lease.ErrRefused))
		})
		node := s.create(p, nil, nil)
		require.GreaterOrEqual(t, time.Since(began), 90*time.Minute)
		require.Less(t, time.Since(began), 91*time.Minute)
		require.Less(t, g.asked.Load(), int64(90*60/5), "the pauses grow")
		require.Len(t, log.With("waits and does not join"), 2, "once for each reason: %s", log)
		require.NoError(t, p.Start(t.Context(), node))
		time.Sleep(time.Minute)
		require.Equal(t, sbr.StateUp, p.Status().State)
		require.Empty(t, p.Status().StartingBecause)
		require.Empty(t, p.Status().Lease.Refused)
		require.Len(t, told, 2, "%v", told)
		require.Equal(t, "resume", told[1])
		require.NoError(t, node.Leave())
		s.end(p, node)
	})
}

// A store that says when to come again is left alone until then.
func TestPrepare_RespectsRetryAfter(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		g := &guarded{Faulty: s.Store.View("n1")}
		g.refuse(busy{lease.ErrRefused})
		p := s.provider(func(c *downing.Config) { c.Store = g })
		conf := serfConfig()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		require.ErrorIs(t, p.Prepare(ctx, conf), lease.ErrRefused)
		require.LessOrEqual(t, g.asked.Load(), int64(8))
		stop(t, p)
	})
}

// While the cluster is whole a member tries its rights now and then; it says once when they are gone, and
// when they are back.
func TestRights_GoneAndBack(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		g, log := &guarded{Faulty: s.Store.View("n1")}, new(logtest.Log)
		p, node := s.started(func(c *downing.Config) { c.Store, c.Logger = g, log.Logger() })
		time.Sleep(time.Hour)
		require.InDelta(t, 12, g.asked.Load(), 4, "one request each five minutes")
		require.Zero(t, s.Store.View("n1").Counters().Writes, "L3")
		g.refuse(errors.New("no answer"))
		time.Sleep(time.Hour)
		require.Empty(t, p.Status().Lease.Refused, "that says nothing about rights")
		g.refuse(fmt.Errorf("%w: patch is forbidden", lease.ErrRefused))
		time.Sleep(time.Hour)
		require.Contains(t, p.Status().Lease.Refused, "patch is forbidden")
		require.Equal(t, sbr.StateUp, p.Status().State, "it may well be on the side of one that can")
		require.Len(t, log.With("the lease store refuses this member"), 1)
		g.refuse(nil)
		time.Sleep(time.Hour)
		require.Empty(t, p.Status().Lease.Refused)
		require.Len(t, log.With("takes this member's requests again"), 1)
		require.NoError(t, node.Leave())
		s.end(p, node)
	})
}

// Names that messages could not carry, and a Serf that cannot carry messages, are refused before anything is
// done.
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
			conf := serfConfig()
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
		conf := serfConfig()
		conf.NodeName = "n1"
		tags := map[string]string{"role": "db", downing.TagUID: "copied"}
		conf.Tags = tags
		require.NoError(t, p.Prepare(t.Context(), conf))
		require.Equal(t, "db", conf.Tags["role"])
		require.Equal(t, map[string]string{"role": "db", downing.TagUID: "copied"}, tags,
			"the application's own map is not touched")
		require.Equal(t, "n1#"+conf.Tags[downing.TagUID], p.Status().Incarnation)
		require.NotEqual(t, "copied", conf.Tags[downing.TagUID])
		require.Equal(t, sbr.StateArming, p.Status().State)
		require.Equal(t, conf.Tags[downing.TagConfig], p.Status().ConfigDigest)
		require.Equal(t, 1024, conf.QuerySizeLimit, "Serf's default is enough for a short name")
		stop(t, p)

		p = s.provider()
		conf = serfConfig()
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

// A configuration names an implementation; its factory is asked for the store, and Stop closes what was
// opened.
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
		conf := serfConfig()
		require.NoError(t, p.Prepare(context.Background(), conf))
		require.NotZero(t, s.Store.View("n1").Counters().Reads)
		stop(t, p)
		require.True(t, closed)
	})
}
