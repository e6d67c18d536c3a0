package mongodb_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/serf-sbr/serf-sbr/test/buildcache"
	"github.com/serf-sbr/serf-sbr/test/servers"
)

// server is a running FerretDB.
type server struct{ *servers.FerretDB }

// newServer starts a server, over SQLite, which ends with the test.
func newServer(t testing.TB) *server {
	t.Helper()
	return start(t, func(servers.Place) string { return "" })
}

// newOverPostgres starts one over PostgreSQL: the newest version, where that can be had.
func newOverPostgres(t testing.TB) *server {
	t.Helper()
	return start(t, func(place servers.Place) string {
		s, err := servers.NewPostgres(place, "")
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Close() })
		if folder, err := buildcache.NewestPostgres.Ensure(t.Context(), os.Stderr); err == nil {
			s.Programs = filepath.Join(folder, "bin")
		}
		require.NoError(t, s.Init(t.Context()))
		require.NoError(t, s.SQL(t.Context(), "postgres", "CREATE DATABASE ferretdb"))
		return s.URL("owner", "ferretdb")
	})
}

func start(t testing.TB, postgres func(servers.Place) (url string)) *server {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts a real server")
	}
	place := servers.Loopback()
	t.Cleanup(place.Thread.Close)
	s, err := servers.StartFerretDB(t.Context(), place, postgres(place), "", os.Stderr)
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
