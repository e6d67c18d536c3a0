package kubetest_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

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
