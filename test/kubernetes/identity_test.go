package kubernetes_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/kubefake"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// The rights that the manifests give are enough to tell which store it is: the same for all leases of a
// namespace, another one elsewhere. A client without them does not know, and hears what is missing.
func TestIdentity_LeastPrivilege(t *testing.T) {
	t.Parallel()
	cluster := kubetest.Shared(t)
	identity := func(account *kubetest.Account, namespace string) string {
		id, err := openKubeconfig(t, account.Kubeconfig(), namespace).Identity(t.Context())
		require.NoError(t, err)
		return id
	}
	one, err := cluster.LeastPrivilegeAccount(t.Context(), "identity-a", testName)
	require.NoError(t, err)
	two, err := cluster.LeastPrivilegeAccount(t.Context(), "identity-a", "other-sbr")
	require.NoError(t, err)
	elsewhere, err := cluster.LeastPrivilegeAccount(t.Context(), "identity-b", testName)
	require.NoError(t, err)
	require.Equal(t, identity(one, "identity-a"), identity(two, "identity-a"))
	require.NotEqual(t, identity(one, "identity-a"), identity(elsewhere, "identity-b"))

	_, err = openKubeconfig(t, one.Kubeconfig(), "identity-b").Identity(t.Context())
	require.ErrorContains(t, err, "a Role in namespace identity-b must allow get on resource namespaces: sbr manifests prints it")
}

// What is no namespace has no identity: an answer of something else must not pass for another store.
func TestIdentity_Unknown(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(http.ResponseWriter){
		"no uid": func(w http.ResponseWriter) {
			kubefake.WriteJSON(w, 200, object{"kind": "Namespace", "metadata": object{}})
		},
		"no JSON":  func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>")) },
		"an error": func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) },
		"no such": func(w http.ResponseWriter) {
			code, failure := kubefake.Failure(404, "NotFound", "namespaces", "team-a", "not found")
			kubefake.WriteJSON(w, code, failure)
		},
		"no answer":  func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"not for us": func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := kubefake.New(t)
			f.Hook = func(w http.ResponseWriter, _ *http.Request) bool { answer(w); return true }
			id, err := newStore(t, f).Identity(t.Context())
			require.Error(t, err)
			require.Empty(t, id)
		})
	}
}
