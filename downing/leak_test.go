package downing_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/downing/memnet/serfnet"
)

// noLeak requires that f leaves no goroutine behind, once Serf's own background work is over.
func noLeak(t *testing.T, f func(t *testing.T, s *single)) {
	synctest.Test(t, func(t *testing.T) {
		before := goleak.IgnoreCurrent()
		f(t, newSingle(t))
		time.Sleep(time.Minute)
		synctest.Wait()
		goleak.VerifyNone(t, before)
	})
}

// A member that leaves.
func TestLeak_StartAndStop(t *testing.T) {
	noLeak(t, func(t *testing.T, s *single) {
		p, end := s.protected()
		end()
		require.False(t, isDown(p))
	})
}

// A member that is stopped first, and whose Serf ends later.
func TestLeak_StopAndThenShutdown(t *testing.T) {
	noLeak(t, func(t *testing.T, s *single) {
		p := s.provider()
		node := s.create(p, nil, nil)
		require.NoError(t, p.Start(t.Context(), node))
		stop(t, p)
		require.NoError(t, node.Leave())
		require.NoError(t, node.Shutdown())
	})
}

// A member that is downed, and never stopped.
func TestLeak_StartAndDown(t *testing.T) {
	noLeak(t, func(t *testing.T, s *single) {
		p := s.provider()
		node := s.create(p, nil, nil)
		require.NoError(t, p.Start(t.Context(), node))
		require.NoError(t, node.Shutdown())
		<-p.Done()
	})
}

// A node that could not be created.
func TestLeak_CreateFailed(t *testing.T) {
	noLeak(t, func(t *testing.T, s *single) {
		p := s.provider()
		_, err := serfnet.Start(s.Net, "n1", func(conf *serf.Config) {
			conf.EventCh = make(chan serf.Event)
			require.NoError(t, p.Prepare(t.Context(), conf))
			conf.ProtocolVersion = 99
		})
		require.Error(t, err)
		stop(t, p)
	})
}
