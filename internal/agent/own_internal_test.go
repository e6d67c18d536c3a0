package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/internal/config"
	_ "github.com/serf-sbr/serf-sbr/lease/file"
	_ "github.com/serf-sbr/serf-sbr/lease/kubernetes"
)

// Nodes of their own that are stopped at one moment do not wait for each other: a node without a receiver for
// its leave waits for less than Serf's time-out. Of two nodes, one is always left so; of more, seldom.
func TestOwn_AllStopAtOnce(t *testing.T) {
	asAgent := func(name string, conf *serf.Config) {
		own, err := serfConfig(&config.Serf{Node: name, Profile: "lan", Bind: "127.0.0.1:7946"},
			clustertest.Logger(name))
		require.NoError(t, err)
		*conf = *own
	}
	for _, n := range []int{2, 3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			clustertest.Virtual(t, clustertest.Options{Serf: asAgent}, func(t *testing.T, c *clustertest.Cluster) {
				c.Form(n)
				ctx, cancel := context.WithTimeout(t.Context(), leaveTime)
				defer cancel()
				began := time.Now()
				var stops sync.WaitGroup
				for _, m := range c.Members() {
					o := &own{serf: m.Serf, stop: func() {}}
					stops.Go(func() { assert.NoError(t, o.leave(ctx, m.Provider), m.Name) })
				}
				stops.Wait()
				took := time.Since(began)
				t.Logf("stopped after %v", took)
				require.Less(t, took, serf.DefaultConfig().BroadcastTimeout)
			})
		})
	}
}

// From the first moment on the health says that the member is starting, and what it waits for: it is in no
// cluster yet.
func TestHealth_NotReadyBeforeTheStart(t *testing.T) {
	for name, c := range map[string]struct{ yaml, want string }{
		"beside an agent":   {"serf: {rpc: '127.0.0.1:1', probe: '127.0.0.1:0'}", "waiting for the Serf agent at 127.0.0.1:1"},
		"a node of its own": {"serf: {node: n1, bind: '127.0.0.1:0'}", "waiting for the lease s-sbr"},
		"no lease": {
			"serf: {node: n1, bind: '127.0.0.1:0'}\nsplit-brain-resolver: {active-strategy: keep-majority}",
			"entering the cluster",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("STATE_DIRECTORY", t.TempDir())
			t.Setenv("KUBECONFIG", "")
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			yaml := "system: s\nlease: {kubernetes: {namespace: shop}}\nhttp: {listen: ''}\n" + c.yaml
			f, err := config.Parse("sbr.yaml", []byte(yaml))
			require.NoError(t, err)
			a := &agent{file: f, log: slog.New(slog.DiscardHandler)}
			require.NoError(t, a.configure(&Options{Exit: func(int) {}}))
			require.NoError(t, a.open(context.Background()))
			defer a.close()
			h := source{a}.Health()
			require.True(t, h.Live.OK)
			require.False(t, h.Ready.OK)
			require.Equal(t, "starting: "+c.want, h.Ready.Reason)
		})
	}
}

// A host in serf.bind is looked up: memberlist takes a name for every address of the machine.
func TestSerfConfig_WhereItBinds(t *testing.T) {
	t.Parallel()
	for bind, want := range map[string]string{
		"": "0.0.0.0:7946", ":1": "0.0.0.0:1", "0.0.0.0:1": "0.0.0.0:1", "[::]:1": ":::1",
		"127.0.0.2:1": "127.0.0.2:1", "localhost:1": "127.0.0.1:1", "[::1%lo]:1": "::1:1",
	} {
		conf, err := serfConfig(&config.Serf{Node: "n1", Bind: bind}, slog.New(slog.DiscardHandler))
		require.NoError(t, err, bind)
		m := conf.MemberlistConfig
		require.Equal(t, want, fmt.Sprintf("%s:%d", m.BindAddr, m.BindPort), bind)
	}
	_, err := serfConfig(&config.Serf{Node: "n1", Bind: "no such host:1"}, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "serf.bind: ")
}

// A lease in a file is warned of, whoever uses it.
func TestChooseLease_WarnsOfAFile(t *testing.T) {
	t.Parallel()
	for yaml, want := range map[string]bool{
		"split-brain-resolver: {lease-majority: {lease-implementation: file}}\nlease: {file: {path: p}}":                 true,
		"singleton: {use-lease: file}\nlease: {kubernetes: {namespace: shop}, file: {path: p}}":                          true,
		"split-brain-resolver: {active-strategy: keep-majority}\nsingleton: {use-lease: file}\nlease: {file: {path: p}}": true,
		"lease: {kubernetes: {namespace: shop}}":                                                                         false,
	} {
		f, err := config.Parse("sbr.yaml", []byte("system: s\n"+yaml))
		require.NoError(t, err)
		var log strings.Builder
		require.NoError(t, (&agent{file: f, log: slog.New(slog.NewTextHandler(&log, nil))}).chooseLease())
		require.Equal(t, want, strings.Contains(log.String(), "THE LEASE IS A FILE"), "%s\n%s", yaml, &log)
	}
}

// asked is an agent that notes whom it was to join; nobody is there.
type asked []string

func (j *asked) Join(_ context.Context, _, addr string) error {
	*j = append(*j, addr)
	return errors.New("nobody is there")
}

func view(awaiting []string, reachable ...string) (s downing.Status) {
	for _, address := range reachable {
		s.Members = append(s.Members, downing.MemberStatus{Address: address, Reachable: true})
	}
	s.Awaiting = awaiting
	return s
}

// The addresses of serf.join at which nobody is are joined: often while members are missing, now and then for
// ever.
func TestSeeker(t *testing.T) {
	t.Parallel()
	f, err := config.Parse("sbr.yaml",
		[]byte("system: s\nserf: {rpc: '127.0.0.1:7373', join: ['a:1', 'b:1', 'c:1']}\n"+
			"split-brain-resolver: {min-members: 2}"))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		st    downing.Status
		rests bool
		want  []string
	}{
		"all are here":                       {view(nil, "a:1", "b:1", "c:1"), true, nil},
		"too few":                            {view(nil, "a:1"), false, []string{"b:1", "c:1"}},
		"it waits for members":               {view([]string{"n3"}, "a:1", "b:1"), false, []string{"c:1"}},
		"nobody seems to be missing":         {view(nil, "a:1", "b:1"), false, nil},
		"the same, when it has been a while": {view(nil, "a:1", "b:1"), true, []string{"c:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var j asked
			newRejoiner(f, &j, slog.New(slog.DiscardHandler)).look(t.Context(), c.st, c.rests)
			slices.Sort(j)
			require.Equal(t, c.want, []string(j))
		})
	}
}

// It goes on for ever: a member that does not answer the first try may come later.
func TestSeeker_GoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j asked
		s := &rejoiner{join: []string{"a:1"}, agent: &j, joins: joins{log: slog.New(slog.DiscardHandler)}}
		s.start(func() downing.Status { return view([]string{"n1"}) })
		time.Sleep(time.Hour)
		s.close()
		require.Len(t, j, 360)
	})
}
