package kubetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(kubetest.M(m)) }

// user sends requests the way a member does: through client-go, with what a kubeconfig says.
type user struct {
	t      *testing.T
	server string
	http   *http.Client
}

func newUser(t *testing.T, kubeconfig string) user {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	// A private copy of the TLS settings keeps client-go from sharing one transport between tests.
	tlsConfig, err := rest.TLSConfigFor(config)
	require.NoError(t, err)
	transport := &http.Transport{TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	wrapped, err := rest.HTTPWrappersForConfig(config, transport)
	require.NoError(t, err)
	return user{t: t, server: config.Host, http: &http.Client{Transport: wrapped}}
}

func (u user) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, u.server+path, bytes.NewReader(body))
	require.NoError(u.t, err)
	request.Header.Set("Content-Type", "application/json")
	return u.http.Do(request)
}

func (u user) code(method, path string, body []byte) int {
	u.t.Helper()
	response, err := u.send(u.t.Context(), method, path, body)
	require.NoError(u.t, err)
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(u.t, err)
	return response.StatusCode
}

func leasesPath(namespace string) string {
	return "/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases"
}

func leaseBody(t *testing.T, name, holder string) []byte {
	lease := coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
	lease.APIVersion, lease.Kind, lease.Name = "coordination.k8s.io/v1", "Lease", name
	raw, err := json.Marshal(lease)
	require.NoError(t, err)
	return raw
}

func TestLeastPrivilege_OnlyTheNamedLease(t *testing.T) {
	cluster := kubetest.Shared(t)
	const name = "payments-sbr"
	namespace := cluster.Namespace(t)
	kubeconfig, err := cluster.LeastPrivilegeKubeconfig(t.Context(), namespace, name)
	require.NoError(t, err)
	member := newUser(t, kubeconfig)
	leases := leasesPath(namespace)

	require.Equal(t, http.StatusForbidden, member.code(http.MethodPost, leases, leaseBody(t, name, "a")),
		"POST has no name to allow")
	require.Equal(t, http.StatusCreated, member.code(http.MethodPut, leases+"/"+name, leaseBody(t, name, "a")))
	require.Equal(t, http.StatusOK, member.code(http.MethodGet, leases+"/"+name, nil))
	require.Equal(t, http.StatusForbidden, member.code(http.MethodPut, leases+"/other",
		leaseBody(t, "other", "a")))
	require.Equal(t, http.StatusForbidden, member.code(http.MethodGet, leases+"/other", nil))
	require.Equal(t, http.StatusForbidden, member.code(http.MethodDelete, leases+"/"+name, nil))
	require.Equal(t, http.StatusForbidden, member.code(http.MethodGet, leases+"?watch=true", nil),
		"a watch must name its lease")
}

func TestShared_IsOne(t *testing.T) {
	require.Same(t, kubetest.Shared(t), kubetest.Shared(t))
}

func TestCluster_AdminMayDoEverything(t *testing.T) {
	cluster := kubetest.Shared(t)
	admin := newUser(t, cluster.AdminKubeconfig())
	require.Equal(t, cluster.URL(), admin.server)
	require.Equal(t, http.StatusOK, admin.code(http.MethodGet, "/api/v1/namespaces", nil))
	require.NoError(t, cluster.CreateNamespace(t.Context(), "twice"))
	require.NoError(t, cluster.CreateNamespace(t.Context(), "twice"))
	require.ErrorContains(t, cluster.CreateNamespace(t.Context(), "Not A Name"), "422")
}

func TestCluster_FaultsAndStop(t *testing.T) {
	cluster := kubetest.New(t)
	const namespace, name = "faults", "payments-sbr"
	kubeconfig, err := cluster.LeastPrivilegeKubeconfig(t.Context(), namespace, name)
	require.NoError(t, err)
	member := newUser(t, kubeconfig)
	lease := leasesPath(namespace) + "/" + name
	require.Equal(t, http.StatusCreated, member.code(http.MethodPut, lease, leaseBody(t, name, "a")))

	t.Run("paused etcd", func(t *testing.T) {
		require.False(t, cluster.EtcdIsPaused())
		require.NoError(t, cluster.PauseEtcd())
		require.True(t, cluster.EtcdIsPaused())
		require.Error(t, sendFor(t, member, time.Second/2, lease))
		require.NoError(t, cluster.ContinueEtcd())
		require.NoError(t, cluster.WaitReady(t.Context()))
		require.Equal(t, http.StatusOK, member.code(http.MethodGet, lease, nil))
	})
	t.Run("paused server", func(t *testing.T) {
		require.NoError(t, cluster.PauseAPIServer())
		require.ErrorIs(t, sendFor(t, member, time.Second/2, lease), context.DeadlineExceeded)
		require.NoError(t, cluster.ContinueAPIServer())
		require.Equal(t, http.StatusOK, member.code(http.MethodGet, lease, nil))
	})
	t.Run("killed server", func(t *testing.T) {
		require.ErrorContains(t, cluster.StartAPIServer(t.Context()), "KillAPIServer first")
		cluster.KillAPIServer()
		cluster.KillAPIServer()
		require.Error(t, sendFor(t, member, time.Second, lease))
		require.ErrorContains(t, cluster.PauseAPIServer(), "no process to signal")
		require.NoError(t, cluster.StartAPIServer(t.Context()))
		require.Equal(t, http.StatusOK, member.code(http.MethodGet, lease, nil),
			"same address, same token, same store")
	})
	t.Run("stop", func(t *testing.T) {
		require.NoError(t, cluster.PauseEtcd())
		require.NoError(t, cluster.Stop(), "a paused program stops too")
		require.NoError(t, cluster.Stop())
		require.NoFileExists(t, kubeconfig)
		require.ErrorContains(t, cluster.StartAPIServer(t.Context()), "stopped")
		_, err := cluster.LeastPrivilegeKubeconfig(t.Context(), namespace, name)
		require.Error(t, err)
	})
}

// sendFor reads the lease with a deadline and returns what went wrong.
func sendFor(t *testing.T, u user, d time.Duration, path string) error {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	response, err := u.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// What an operator or a platform does to a control plane can be done here, and undone.
func TestDisasters(t *testing.T) {
	c := kubetest.New(t)
	a, err := c.LeastPrivilegeAccount(t.Context(), "payments", "payments-sbr")
	require.NoError(t, err)
	path := leasesPath("payments")
	read := func() int { return newUser(t, a.Kubeconfig()).code(http.MethodGet, path+"/payments-sbr", nil) }
	require.Equal(t, http.StatusNotFound, read())

	require.NoError(t, a.TakeRights(t.Context()))
	require.Equal(t, http.StatusForbidden, read())
	require.NoError(t, a.GiveRights(t.Context()))
	require.Equal(t, http.StatusNotFound, read())

	require.NoError(t, a.ExpireToken(t.Context()))
	require.Equal(t, http.StatusUnauthorized, read())
	require.NoError(t, a.RenewToken(t.Context()))
	require.Equal(t, http.StatusNotFound, read())

	admin := newUser(t, c.AdminKubeconfig())
	create := func(name string) {
		require.Equal(t, http.StatusCreated, admin.code(http.MethodPost, path, leaseBody(t, name, "n1")))
	}
	create("before")
	snapshot, err := c.SnapshotEtcd()
	require.NoError(t, err)
	for range 2 { // one snapshot serves twice
		create("after")
		require.NoError(t, c.RestoreEtcd(t.Context(), snapshot))
		admin = newUser(t, c.AdminKubeconfig())
		require.Equal(t, http.StatusOK, admin.code(http.MethodGet, path+"/before", nil))
		require.Equal(t, http.StatusNotFound, admin.code(http.MethodGet, path+"/after", nil))
	}
}
