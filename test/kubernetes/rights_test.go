package kubernetes_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/kubefake"
	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// operations are what the rights are for. Each gets the version of the present lease, empty if there is none.
var operations = map[string]func(ctx context.Context, s *kubernetes.Store, present lease.Version) error{
	"get": func(ctx context.Context, s *kubernetes.Store, _ lease.Version) error {
		_, err := s.Read(ctx)
		return err
	},
	"watch": func(ctx context.Context, s *kubernetes.Store, _ lease.Version) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second) // of a lease that does not exist it says nothing
		defer cancel()
		err := s.Watch(ctx, func(lease.Snapshot) { cancel() })
		if ctx.Err() != nil {
			return nil // it was open
		}
		return err
	},
	"patch":  write,
	"create": write,
	"update": write,
}

func write(ctx context.Context, s *kubernetes.Store, present lease.Version) error {
	_, err := s.Write(ctx, record("a", 1), present)
	return err
}

// Each right is taken away in turn: Preflight, the operation that needs it and an Acquire fail, and the error
// names the verb, the resource and the way out. Nothing that does not need it fails, and nothing is granted.
func TestRights_EachOneTakenAway(t *testing.T) {
	cluster := kubetest.Shared(t)
	for _, api := range []kubernetes.API{kubernetes.Native, kubernetes.Akka, kubernetes.Pekko} {
		for _, right := range (realWorld{api: api}).rights() {
			t.Run(fmt.Sprintf("%s without %s", api, right), func(t *testing.T) {
				w := newRealWorld(t, cluster)
				if api.Custom() {
					w = newCustomWorld(t, cluster, api)
				}
				s := w.store(t)
				var present lease.Version
				if creating := right == "create" || right == "update"; !creating {
					w.apply(t, object{"spec": object{}})
					snapshot, err := s.Read(t.Context())
					require.NoError(t, err)
					present = snapshot.Version
				}
				w.grant(t, without(w.rights(), right))
				withoutRight(t, w, s, right, present)
			})
		}
	}
}

func withoutRight(t *testing.T, w realWorld, s *kubernetes.Store, right string, present lease.Version) {
	var err error
	// The authoriser learns of it through a watch.
	require.Eventually(t, func() bool {
		err = s.Preflight(t.Context())
		return err != nil
	}, waitFor, 10*time.Millisecond)
	namesTheWayOut := func(err error) {
		t.Helper()
		require.ErrorContains(t, err, "cannot "+right+` resource "leases" in API group "`+w.api.Group()+`"`)
		require.ErrorContains(t, err, "a Role in namespace "+w.namespace+" must allow ")
		require.ErrorContains(t, err, right)
		require.ErrorContains(t, err, "resourceNames ["+testName+"]")
		require.NotContains(t, err.Error(), "\n")
	}
	namesTheWayOut(err)
	err = operations[right](t.Context(), s, present)
	namesTheWayOut(err)
	switch right {
	case "get":
		require.NotErrorIs(t, err, lease.ErrConflict)
	default:
		require.ErrorIs(t, err, lease.ErrRefused)
	}
	l, err := lease.New(s, "a", lease.DefaultSettings(), lease.Options{})
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := contextFor(t, 2*time.Second)
	defer cancel()
	out := linear.AnswerOf(l.Acquire(ctx, lease.Proposal{}))
	if right == "watch" {
		require.Equal(t, sbr.Granted, out.Kind, "it takes no watch: %v", out)
	} else {
		require.Equal(t, sbr.Unknown, out.Kind, "%v", out)
		namesTheWayOut(out.Err)
		require.False(t, l.Check())
	}
	for other, operation := range operations {
		applies := other == "get" || other == "watch" || other == "patch" && present != ""
		if applies && other != right && right != "watch" {
			require.NoError(t, operation(t.Context(), s, present), other)
		}
	}
}

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
	require.ErrorContains(t, err,
		"a Role in namespace identity-b must allow get on resource namespaces: sbr manifests prints it")
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
