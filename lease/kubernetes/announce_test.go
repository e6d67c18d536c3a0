package kubernetes_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/kubefake"
	"github.com/serf-sbr/serf-sbr/lease"
)

func TestAnnounce(t *testing.T) {
	f := kubefake.New(t)
	s := newStore(t, f)
	require.NoError(t, s.Announce(t.Context(), "Suspended", "before there is a lease", true))
	f.Put(testName, object{"spec": object{}})
	_, err := s.Read(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Announce(t.Context(), "Verdict", "a: verdict 1", false))

	require.Len(t, f.Announced, 2)
	first, second := f.Announced[0], f.Announced[1]
	require.Equal(t, "Warning", first["type"])
	require.Nil(t, first["involvedObject"].(object)["uid"])
	require.Equal(t, object{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "namespace": testNamespace, "name": testName,
		"uid": kubefake.Meta(f.Stored(testName))["uid"],
	}, second["involvedObject"])
	require.Equal(t, []any{"Normal", "Verdict", "a: verdict 1"},
		[]any{second["type"], second["reason"], second["message"]})
}

// One request, whatever the answer is. Only a right that is missing is a refusal, and the error says how to
// give it.
func TestAnnounce_Fails(t *testing.T) {
	f := kubefake.New(t)
	s := newStore(t, f)
	f.Forbidden["events"] = true
	err := s.Announce(t.Context(), "Downed", "text", true)
	require.ErrorIs(t, err, lease.ErrRefused)
	require.ErrorContains(t, err, "a Role in namespace team-a must allow create on resource events")
	require.NoError(t, s.Preflight(t.Context()), "nobody needs it")

	f.ResetCalls()
	f.Hook = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	err = s.Announce(t.Context(), "Downed", "text", true)
	require.Error(t, err)
	require.NotErrorIs(t, err, lease.ErrRefused)
	require.Equal(t, []string{"create"}, f.Made())
}
