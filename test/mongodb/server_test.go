package mongodb_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/serf-sbr/serf-sbr/test/servers"
)

// server is a running FerretDB.
type server struct{ *servers.FerretDB }

// newServer starts a server, which ends with the test.
func newServer(t testing.TB) *server {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts a real server")
	}
	place := servers.Loopback()
	t.Cleanup(place.Thread.Close)
	s, err := servers.StartFerretDB(t.Context(), place, "", os.Stderr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return &server{s}
}

// restart ends it as abruptly as it can happen.
func (s *server) restart(t testing.TB) {
	t.Helper()
	s.Kill()
	require.NoError(t, s.Start(t.Context()))
}

// client returns a new client, which ends with the test. seen is told of each command; it may be nil.
func (s *server) client(t testing.TB, seen func(bson.Raw)) *mongo.Client {
	t.Helper()
	opts := s.Options()
	if seen != nil {
		opts.SetMonitor(&event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) { seen(e.Command) }})
	}
	client, err := mongo.Connect(opts)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client
}
