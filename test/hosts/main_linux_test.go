package hosts_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/test/browser"
	"github.com/serf-sbr/serf-sbr/test/buildcache"
	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
	"github.com/serf-sbr/serf-sbr/test/hosts/lab"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
	"github.com/serf-sbr/serf-sbr/test/serftest"
)

// e2eEnv switches these tests on; with the value of everything all starts are played in both modes.
const (
	e2eEnv     = "SBR_E2E"
	everything = "all"
)

func TestMain(m *testing.M) {
	code := run(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func run(m *testing.M) int {
	if os.Getenv(e2eEnv) == "" {
		return m.Run()
	}
	return browser.Main(m)
}

// built is the folder for what is built once, by the first test that needs it.
func built() (string, error) {
	root, err := buildcache.Root()
	return filepath.Join(root, ".cache", "e2e"), err
}

var buildSBR = sync.OnceValues(func() (string, error) {
	dir, err := built()
	if err != nil {
		return "", err
	}
	return cluster.BuildSBR(context.Background(), dir)
})

// sbrPath is `sbr`, built from this repository.
func sbrPath(t testing.TB) string {
	t.Helper()
	path, err := buildSBR()
	require.NoError(t, err)
	return path
}

// mode is how the members run.
type mode struct {
	name    string
	own     bool
	flavour serftest.Flavour
}

var (
	besideModule = mode{name: "beside the module's agent"}
	besideDebian = mode{name: "beside Debian's agent", flavour: serftest.Debian}
	ownNode      = mode{name: "own node", own: true}
	allModes     = []mode{besideModule, besideDebian, ownNode}
)

// five are the hosts of most tests.
var five = []string{"n1", "n2", "n3", "n4", "n5"}

// rig is a lab with an API server and a cluster.
type rig struct {
	*cluster.Cluster
	t   *testing.T
	lab *lab.Lab
	api *kubetest.Cluster
}

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Getenv(e2eEnv) == "" {
		t.Skip("makes network namespaces, as root: run make e2e, which sets " + e2eEnv)
	}
	require.NoError(t, lab.Check())
}

// newLab is a lab with an API server.
func newLab(t *testing.T, hosts ...string) (*lab.Lab, *kubetest.Cluster) {
	t.Helper()
	l := newHosts(t, hosts...)
	api, err := l.StartAPI(t.Context(), "api", os.Stderr)
	require.NoError(t, err)
	return l, api
}

// newHosts is a lab; its logs are kept and named when the test fails.
func newHosts(t *testing.T, hosts ...string) *lab.Lab {
	t.Helper()
	needsRoot(t)
	l, err := lab.New(t.Context(), lab.Options{Hosts: hosts})
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			l.Keep()
			t.Logf("what the processes wrote is in %s", l.Dir())
		}
		require.NoError(t, l.Close())
	})
	return l
}

// newRig starts a cluster and returns when it is whole.
func newRig(t *testing.T, m mode, o cluster.Options) *rig {
	t.Helper()
	return newRigWith(t, m, o, func(*rig, *cluster.Options) {})
}

// newRigWith does so once more is on the network.
func newRigWith(t *testing.T, m mode, o cluster.Options, more func(*rig, *cluster.Options)) *rig {
	t.Helper()
	r := bootRig(t, m, o, more)
	r.waitWhole(60 * time.Second)
	return r
}

// bootRig starts a cluster, once more is on the network, and does not wait for it.
func bootRig(t *testing.T, m mode, o cluster.Options, more func(*rig, *cluster.Options)) *rig {
	t.Helper()
	needsRoot(t)
	o = m.filled(t, o)
	r := &rig{t: t}
	r.lab, r.api = newLab(t, o.Hosts...)
	more(r, &o)
	var err error
	r.Cluster, err = cluster.Start(t.Context(), r.lab, cluster.Kubernetes(r.api), o)
	require.NoError(t, err)
	t.Cleanup(r.Stop)
	return r
}

// filled are the options with the programs of the mode.
func (m mode) filled(t *testing.T, o cluster.Options) cluster.Options {
	t.Helper()
	o.Own, o.Flavour = m.own, m.flavour
	if o.SBR == "" {
		o.SBR = sbrPath(t)
	}
	if !m.own {
		var err error
		o.Serf, err = serftest.Ensure(t.Context(), m.flavour, os.Stderr)
		require.NoError(t, err)
	}
	if o.Hosts == nil {
		o.Hosts = five
	}
	return o
}

func (r *rig) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(r.t.Context(), d)
	r.t.Cleanup(cancel)
	return ctx
}

func (r *rig) waitWhole(d time.Duration, names ...string) {
	r.t.Helper()
	require.NoError(r.t, r.WaitWhole(r.within(d), names...))
}

// waitOneSide returns the members that are up once they are one side, or none is up.
func (r *rig) waitOneSide(d time.Duration) []string {
	r.t.Helper()
	up, err := r.WaitOneSide(r.within(d))
	require.NoError(r.t, err)
	r.t.Logf("up: %v", up)
	return up
}

// verify checks what must hold whatever the test is about.
func (r *rig) verify() {
	r.t.Helper()
	require.NoError(r.t, r.Verify())
}

// incarnations are what runs on the hosts now, by name.
func (r *rig) incarnations() map[string]string {
	r.t.Helper()
	all, err := r.Incarnations(r.t.Context())
	require.NoError(r.t, err)
	return all
}

// downed are the names of the members that were downed, each once.
func (r *rig) downed() []string {
	r.t.Helper()
	downs, err := r.Downs()
	require.NoError(r.t, err)
	names := []string{}
	for _, d := range downs {
		names = append(names, d.Member)
	}
	return names
}

func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(x string) bool { return slices.Contains(some, x) })
}
