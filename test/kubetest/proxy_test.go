package kubetest_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

func TestProxy_InFrontOfTheRealServer(t *testing.T) {
	cluster := kubetest.Shared(t)
	const name = "payments-sbr"
	namespace := cluster.Namespace(t)
	direct, err := cluster.LeastPrivilegeKubeconfig(t.Context(), namespace, name)
	require.NoError(t, err)
	proxy, err := kubetest.NewProxy(direct)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, proxy.Close()) })
	member := newUser(t, proxy.Kubeconfig())
	lease := leasesPath(namespace) + "/" + name

	proxy.SetFault(func(r *http.Request) kubetest.Fault {
		if r.Method == http.MethodPut {
			return kubetest.Fault{Kind: kubetest.FaultDropResponse}
		}
		return kubetest.Fault{}
	})
	_, err = member.send(t.Context(), http.MethodPut, lease, leaseBody(t, name, "a"))
	require.Error(t, err)
	require.Equal(t, http.StatusOK, member.code(http.MethodGet, lease, nil), "the unanswered write was committed")
	require.Equal(t, http.StatusForbidden, member.code(http.MethodGet, leasesPath(namespace), nil), "rights are those of the user")
	require.Equal(t, map[kubetest.Call]int{
		{Verb: http.MethodPut, Path: lease}:                 1,
		{Verb: http.MethodGet, Path: lease}:                 1,
		{Verb: http.MethodGet, Path: leasesPath(namespace)}: 1,
	}, proxy.Counts())
}
