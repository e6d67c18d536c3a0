package agentrpc_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/agentrpc"
	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/test/serftest"
)

// noticed bounds how long it may take until a silent agent is noticed: what the options promise, and room for
// a machine under load.
const noticed = 2*time.Second + 3*time.Second

var allAlive = map[string]string{"n1": "alive", "n2": "alive", "n3": "alive"}

// watch records what Members said whenever it changed.
func (s *sidecar) watch(t *testing.T, check func(statuses map[string]string)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if all := s.statuses(); all != nil {
				check(all)
			}
			select {
			case <-time.After(2 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// The agent restarts and remembers nobody: not for a moment does its sidecar see a cluster of one. Once it
// has joined one of the others it lists all of them, and takes tags and messages as before.
func TestRestart_LosesNobody(t *testing.T) {
	serftest.EachFlavour(t, func(t *testing.T, f serftest.Flavour) {
		agents, s := cluster(t, f, 3)
		require.NoError(t, s[2].Tag(bounded(t), map[string]string{"uid": "x"}, nil))
		s[2].sees(t, allAlive)
		failed := make(chan struct{}, 1)
		s[2].watch(t, func(all map[string]string) {
			if len(all) != 3 {
				t.Errorf("it sees %v", all)
			}
			if all["n1"] == "failed" && all["n2"] == "failed" {
				select {
				case failed <- struct{}{}:
				default:
				}
			}
		})
		agents[2].Restart(func(o *serftest.Options) { o.Join = nil })
		<-failed
		require.Empty(t, tagsOf(s[2], "n3"))
		require.NoError(t, s[2].Tag(bounded(t), map[string]string{"uid": "x"}, nil))
		require.NoError(t, s[2].Join(bounded(t), "n1", agents[0].Bind()))
		s[2].sees(t, allAlive)
		require.Equal(t, map[string]string{"uid": "x"}, tagsOf(s[2], "n3"))
		for _, other := range s[:2] {
			eventually(t, "the others see its tags again", func() bool {
				return fmt.Sprint(other.statuses()) == fmt.Sprint(allAlive) && tagsOf(other, "n3")["uid"] == "x"
			})
		}
		eventually(t, "events are delivered again", func() bool { // what comes before that line is back is missed
			answers, err := s[0].Query(wire.MessageQuery, []byte("again"), 100*time.Millisecond)
			require.NoError(t, err)
			for range answers {
			}
			return s[2].heard(wire.MessageQuery + " again")
		})
	})
}

// Members that cannot be joined stay failed, for as long as they are not removed.
func TestRestart_TheUnreachableStayFailedUntilRemoved(t *testing.T) {
	serftest.EachFlavour(t, func(t *testing.T, f serftest.Flavour) {
		agents, s := cluster(t, f, 2)
		agents[0].Kill()
		s[1].sees(t, map[string]string{"n1": "failed", "n2": "alive"})
		agents[1].Restart(func(o *serftest.Options) { o.Join = nil })
		s[1].sees(t, map[string]string{"n1": "failed", "n2": "alive"})
		eventually(t, "the forgotten one is removed, once the restart was noticed", func() bool {
			removed, err := s[1].Remove(bounded(t), "n1")
			require.NoError(t, err)
			return removed
		})
		s[1].sees(t, map[string]string{"n2": "alive"})
		agents[0].Restart(func(o *serftest.Options) { o.Join = []string{agents[1].Bind()} })
		s[1].sees(t, map[string]string{"n1": "alive", "n2": "alive"})
	})
}

func TestAgentGone_IsNotCurrent(t *testing.T) {
	serftest.EachFlavour(t, func(t *testing.T, f serftest.Flavour) {
		agents, s := cluster(t, f, 1)
		agents[0].Kill()
		require.Eventually(t, func() bool { return !s[0].current() }, noticed, time.Millisecond)
		list, _, _ := s[0].Members()
		require.Len(t, list, 1, "what was known is still told")
		_, err := s[0].Query("sbr", nil, time.Second)
		require.Error(t, err)
		require.Error(t, s[0].Tag(bounded(t), map[string]string{"a": "b"}, nil))
		require.Error(t, s[0].Join(bounded(t), "n2", "127.0.0.1:1"))
		_, err = s[0].Remove(bounded(t), "n1")
		require.Error(t, err)
		require.Error(t, s[0].Leave(bounded(t)))
		require.Never(t, s[0].current, time.Second, 10*time.Millisecond)
		agents[0].Restart(nil)
		eventually(t, "it is back", s[0].current)
	})
}

// A stopped agent takes connections and says nothing.
func TestAgentStopped_IsNotCurrentUntilItContinues(t *testing.T) {
	serftest.EachFlavour(t, func(t *testing.T, f serftest.Flavour) {
		agents, s := cluster(t, f, 2)
		for range 2 {
			stopped := time.Now()
			agents[0].Stop()
			require.Eventually(t, func() bool { return !s[0].current() }, noticed, time.Millisecond)
			t.Log("noticed after", time.Since(stopped))
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			require.Error(t, s[0].Tag(ctx, map[string]string{"a": "b"}, nil))
			cancel()
			agents[0].Continue()
			continued := time.Now()
			eventually(t, "it answers", s[0].current)
			t.Log("current after", time.Since(continued))
		}
	})
}

func TestClose_WhileTheAgentIsStopped(t *testing.T) {
	agents, s := cluster(t, serftest.Module, 1)
	agents[0].Stop()
	answers, err := s[0].Query("sbr", nil, time.Hour)
	require.Error(t, err)
	require.Nil(t, answers)
	began := time.Now()
	s[0].Close()
	require.Less(t, time.Since(began), noticed)
	agents[0].Continue()
}

// An agent that does not answer is waited for, and said to be what was seen of it, once.
func TestOpen_WaitsForTheAgent(t *testing.T) {
	hangUp := func(l net.Listener) {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			_ = c.Close()
		}
	}
	reset := func(l net.Listener) {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			_, _ = c.Read(make([]byte, 1))
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}
	}
	speak := func(l net.Listener) {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
		}
	}
	for name, tc := range map[string]struct {
		serve func(net.Listener) // nil: nobody
		want  error
		text  string
	}{
		"nobody listens": {nil, downing.ErrAgentRefused,
			"connection refused (does it run, with this rpc_addr?)"},
		"it is frozen": {func(net.Listener) {}, downing.ErrAgentTimeout,
			"time-out: it accepts the connection and does not answer"},
		"it hangs up":              {hangUp, downing.ErrAgentClosed, ""},
		"it resets the connection": {reset, downing.ErrAgentClosed, ""},
		"it speaks something else": {speak, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			t.Cleanup(func() { _ = l.Close() })
			if tc.serve == nil {
				require.NoError(t, l.Close())
			} else {
				go tc.serve(l)
			}
			addr, log := l.Addr().String(), new(logtest.Log)
			o := options(t, addr)
			o.Timeout, o.Logger = 200*time.Millisecond, log.Logger()
			a, err := agentrpc.New(o)
			require.NoError(t, err)
			t.Cleanup(a.Close)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err = a.Open(ctx, downing.AgentEvents{})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NotErrorIs(t, err, downing.ErrAgentAuth)
			require.ErrorContains(t, err, addr)
			require.NotContains(t, err.Error(), "\n")
			require.Len(t, log.With("waiting for the Serf agent"),
				1, "said again when the error is another one: %s", log)
			if _, _, silence := a.Members(); tc.want != nil {
				require.ErrorIs(t, silence, tc.want)
				require.ErrorContains(t, silence, tc.text)
			}
		})
	}
}

func viaProxy(t *testing.T) (*proxy, []*serftest.Agent, *sidecar) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a stock Serf agent, which is built first: run without -short")
	}
	n1 := serftest.Start(t, serftest.Options{Node: "n1", Profile: "local"})
	n2 := serftest.Start(t, serftest.Options{Node: "n2", Profile: "local", Join: []string{n1.Bind()}})
	p := newProxy(t, n1.RPC())
	s := open(t, options(t, p.addr()))
	s.sees(t, map[string]string{"n1": "alive", "n2": "alive"})
	return p, []*serftest.Agent{n1, n2}, s
}

func TestWay_SlowIsCurrent(t *testing.T) {
	p, _, s := viaProxy(t)
	p.slow(100 * time.Millisecond)
	require.NoError(t, s.Tag(bounded(t), map[string]string{"a": "b"}, nil))
	require.Never(t, func() bool { return !s.current() }, 2*time.Second, time.Millisecond)
}

// Wherever the agent's words are cut, the sidecar connects again and goes on.
func TestWay_CutInTheMiddle(t *testing.T) {
	p, _, s := viaProxy(t)
	for _, n := range []int{1, 3, 17, 40, 100, 200} {
		before := p.count()
		p.cutAfter(n)
		eventually(t, "it connects again", func() bool { return p.count() > before && s.current() })
	}
	s.sees(t, map[string]string{"n1": "alive", "n2": "alive"})
}

// The events' connection alone is lost: members stay current, and queries arrive again.
func TestWay_StreamLost(t *testing.T) {
	p, agents, s := viaProxy(t)
	other := open(t, options(t, agents[1].RPC()))
	for i := range 2 {
		before := p.count()
		p.cut(i + 1)
		eventually(t, "it connects again", func() bool { return p.count() > before })
		require.True(t, s.current())
		text := fmt.Sprint("query ", i)
		eventually(t, "a query arrives", func() bool {
			_, err := other.Query(wire.MessageQuery, []byte(text), 100*time.Millisecond)
			require.NoError(t, err)
			return s.heard(wire.MessageQuery + " " + text)
		})
	}
}

// Another node took the agent's place: its members are not this node's.
func TestAgentReplaced_IsNotCurrent(t *testing.T) {
	agents, s := cluster(t, serftest.Module, 1)
	agents[0].Restart(func(o *serftest.Options) { o.Node = "n9" })
	eventually(t, "it is refused", func() bool { return !s[0].current() })
	require.Never(t, s[0].current, 2*time.Second, 10*time.Millisecond)
	agents[0].Restart(func(o *serftest.Options) { o.Node = "n1" })
	eventually(t, "it is back", s[0].current)
}

func TestRemove_OnlyTheFailed(t *testing.T) {
	serftest.EachFlavour(t, func(t *testing.T, f serftest.Flavour) {
		agents, s := cluster(t, f, 3)
		refuse := func(name string) {
			t.Helper()
			removed, err := s[0].Remove(bounded(t), name)
			require.NoError(t, err)
			require.False(t, removed, name)
		}
		refuse("n2")
		refuse("unknown")
		agents[2].Kill()
		failed := map[string]string{"n1": "alive", "n2": "alive", "n3": "failed"}
		s[0].sees(t, failed)
		s[1].sees(t, failed)
		removed, err := s[0].Remove(bounded(t), "n3")
		require.NoError(t, err)
		require.True(t, removed)
		left := map[string]string{"n1": "alive", "n2": "alive", "n3": "left"}
		s[0].sees(t, left)
		s[1].sees(t, left)
		refuse("n3")
	})
}

func TestLeave_EndsTheAgent(t *testing.T) {
	serftest.EachFlavour(t, func(t *testing.T, f serftest.Flavour) {
		agents, s := cluster(t, f, 2)
		leaving := make(chan struct{}, 1)
		s[1].watch(t, func(all map[string]string) {
			if all["n2"] == "leaving" || all["n2"] == "left" {
				select {
				case leaving <- struct{}{}:
				default:
				}
			}
		})
		require.NoError(t, s[1].Leave(bounded(t)))
		<-leaving // a leaving member is not one that lost its agent
		exit, err := agents[1].Wait(bounded(t))
		require.NoError(t, err)
		require.Zero(t, exit.Code)
		eventually(t, "it is noticed", func() bool { return !s[1].current() })
		s[0].sees(t, map[string]string{"n1": "alive", "n2": "left"})
	})
}
