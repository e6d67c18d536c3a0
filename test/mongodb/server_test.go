package mongodb_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/mongodb"
	"github.com/serf-sbr/serf-sbr/test/buildcache"
	"github.com/serf-sbr/serf-sbr/test/faults"
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

// FerretDB has no users here, and its disk is not filled.
func TestFaultMatrix(t *testing.T) {
	s := newServer(t)
	collection := s.newCollection(t)
	records := s.client(t, nil).Database("sbr").Collection(collection)
	faults.Matrix(t, &faults.Target{
		Name:    "MongoDB's protocol",
		Address: s.Address(),
		Polls:   true, // it has no change streams
		Open: func(t *faults.T, at, name string) lease.Store {
			client, err := mongo.Connect(mongodb.Options("mongodb://"+at+"/?directConnection=true", 5*time.Second))
			require.NoError(t, err)
			t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
			store, err := mongodb.New(client.Database("sbr").Collection(collection), name)
			require.NoError(t, err)
			return store
		},
		Delete: func(ctx context.Context, name string) error {
			_, err := records.DeleteOne(ctx, bson.D{{Key: "_id", Value: name}})
			return err
		},
		Wholes: map[string]faults.Whole{
			faults.Killed: {
				Begin: func() error { s.Kill(); return nil },
				End:   func() error { return s.Start(t.Context()) },
			},
		},
	})
}
