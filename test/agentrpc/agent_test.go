package agentrpc_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/agentrpc"
	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/test/serftest"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // the client library has something to say about each connection that ends
	goleak.VerifyTestMain(m)
}

// within bounds everything that is awaited, on a machine that is busy with other things.
const within = 30 * time.Second

func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	require.Eventually(t, check, within, 10*time.Millisecond, what)
}

// sidecar is an open Agent and what it told.
type sidecar struct {
	*agentrpc.Agent
	self serf.Member

	mu      sync.Mutex
	changes int
	queries []string
	answer  string // what each query is answered
}

func options(t *testing.T, addr string) agentrpc.Options {
	o := agentrpc.DefaultOptions()
	o.Addr = addr
	o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	return o
}

func open(t *testing.T, o agentrpc.Options) *sidecar {
	t.Helper()
	a, err := agentrpc.New(o)
	require.NoError(t, err)
	s := &sidecar{Agent: a}
	t.Cleanup(a.Close)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	s.self, err = a.Open(ctx, downing.AgentEvents{Changed: s.changed, Query: s.query})
	require.NoError(t, err)
	return s
}

func (s *sidecar) changed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
}

func (s *sidecar) query(name, _ string, payload []byte, respond func([]byte) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queries = append(s.queries, name+" "+string(payload))
	if s.answer != "" {
		_ = respond([]byte(s.answer)) // a test that needs it misses it
	}
}

func (s *sidecar) heard(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.queries, what)
}

// statuses are those of all members, or nil while they are not current.
func (s *sidecar) statuses() map[string]string {
	list, _, silence := s.Members()
	if silence != nil {
		return nil
	}
	all := make(map[string]string)
	for _, m := range list {
		all[m.Name] = m.Status.String()
	}
	return all
}

func (s *sidecar) sees(t *testing.T, want map[string]string) {
	t.Helper()
	eventually(t, fmt.Sprint(want), func() bool { return fmt.Sprint(s.statuses()) == fmt.Sprint(want) })
}

func (s *sidecar) current() bool {
	_, _, silence := s.Members()
	return silence == nil
}

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	t.Cleanup(cancel)
	return ctx
}

// cluster starts agents named n1, n2, ... that know each other, with a sidecar each.
func cluster(t *testing.T, f serftest.Flavour, size int) (agents []*serftest.Agent, sidecars []*sidecar) {
	t.Helper()
	want := make(map[string]string)
	for i := range size {
		o := serftest.Options{Flavour: f, Node: fmt.Sprintf("n%d", i+1), Profile: "local", RPCAuth: "secret"}
		if i > 0 {
			o.Join = []string{agents[0].Bind()}
		}
		agents = append(agents, serftest.Start(t, o))
		ao := options(t, agents[i].RPC())
		ao.AuthKey = "secret"
		sidecars = append(sidecars, open(t, ao))
		want[o.Node] = "alive"
	}
	for _, s := range sidecars {
		s.sees(t, want)
	}
	return agents, sidecars
}

func tagsOf(s *sidecar, name string) map[string]string {
	list, _, _ := s.Members()
	for _, m := range list {
		if m.Name == name {
			return m.Tags
		}
	}
	return nil
}

func TestAgent_MembersTagsAndQueries(t *testing.T) {
	serftest.EachFlavour(t, func(t *testing.T, f serftest.Flavour) {
		agents, s := cluster(t, f, 3)
		require.Equal(t, "n1", s[0].self.Name)
		require.Equal(t, agents[0].Bind(), fmt.Sprintf("%s:%d", s[0].self.Addr, s[0].self.Port))

		require.NoError(t, s[0].Tag(bounded(t), map[string]string{"a": "1", "b": "2"}, nil))
		require.NoError(t, s[0].Tag(bounded(t), map[string]string{"c": "3"}, []string{"a", "unknown"}))
		for _, other := range s {
			eventually(t, "all see the tags", func() bool { return fmt.Sprint(tagsOf(other, "n1")) == "map[b:2 c:3]" })
		}

		for _, i := range []int{1, 2} {
			s[i].mu.Lock()
			s[i].answer = s[i].self.Name + " heard it"
			s[i].mu.Unlock()
		}
		for _, name := range []string{wire.MessageQuery, wire.FrameQuery} {
			answers, err := s[0].Query(name, []byte("hello"), 2*time.Second)
			require.NoError(t, err)
			got := make(map[string]string)
			for a := range answers {
				got[a.From] = string(a.Payload)
			}
			require.Equal(t, map[string]string{"n2": "n2 heard it", "n3": "n3 heard it"}, got, name)
			require.True(t, s[1].heard(name+" hello"))
		}
		_, err := s[0].Query("of-somebody-else", nil, time.Second)
		require.ErrorContains(t, err, "of-somebody-else")

		_, before, _ := s[0].Members()
		require.Less(t, time.Since(before), within)
		eventually(t, "the members are read again",
			func() bool { _, asked, _ := s[0].Members(); return asked.After(before) })
	})
}

func TestOpen_RefusedKeyIsPermanent(t *testing.T) {
	serftest.EachFlavour(t, func(t *testing.T, f serftest.Flavour) {
		agent := serftest.Start(t, serftest.Options{Flavour: f, RPCAuth: "secret"})
		for _, key := range []string{"", "wrong"} {
			o := options(t, agent.RPC())
			o.AuthKey = key
			a, err := agentrpc.New(o)
			require.NoError(t, err)
			_, err = a.Open(bounded(t), downing.AgentEvents{})
			require.ErrorIs(t, err, downing.ErrAgentAuth)
			require.NotErrorIs(t, err, context.DeadlineExceeded, "it is not tried again")
			a.Close()
		}
	})
}
