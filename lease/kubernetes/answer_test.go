package kubernetes_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/kubefake"
)

// A lease that does not exist is an answer; a server in trouble has none.
func TestStore_LastAnswer(t *testing.T) {
	f := kubefake.New(t)
	s := newStore(t, f)
	require.Zero(t, s.LastAnswer())
	f.Hook = func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "no", http.StatusServiceUnavailable)
		return true
	}
	_, err := s.Read(t.Context())
	require.Error(t, err)
	require.Zero(t, s.LastAnswer())
	f.Hook = nil
	before := time.Now()
	_, err = s.Read(t.Context())
	require.NoError(t, err)
	require.False(t, s.LastAnswer().Before(before))
}
