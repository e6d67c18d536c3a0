package postgres_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease/postgres"
	"github.com/serf-sbr/serf-sbr/test/buildcache"
	"github.com/serf-sbr/serf-sbr/test/servers"
)

// server is a running PostgreSQL.
type server struct {
	*servers.Postgres
	standby *server // that of addStandby
}

// newServer starts a server, which ends with the test. Everybody on this machine may connect as anybody.
func newServer(t testing.TB) *server {
	t.Helper()
	s := newFolder(t)
	require.NoError(t, s.Init(t.Context()))
	return s
}

// newest starts a server of the newest version, where that can be had.
func newest(t testing.TB) *server {
	t.Helper()
	s := newFolder(t)
	folder, err := buildcache.NewestPostgres.Ensure(t.Context(), os.Stderr)
	if err != nil {
		t.Skipf("only one version of PostgreSQL is tried: %v", err) // make postgres has said so
	}
	s.Programs = filepath.Join(folder, "bin")
	require.NoError(t, s.Init(t.Context()))
	return s
}

// newFolder makes a place for a server.
func newFolder(t testing.TB) *server {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts a real server")
	}
	place := servers.Loopback()
	t.Cleanup(place.Thread.Close)
	s, err := servers.NewPostgres(place, "")
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return &server{Postgres: s}
}

// addStandby gives the server a standby, which confirms each write before it is acknowledged if it is
// synchronous.
func (s *server) addStandby(t testing.TB, synchronous bool) {
	t.Helper()
	s.standby = newFolder(t)
	require.NoError(t, s.standby.Copy(t.Context(), s.Postgres))
	if synchronous {
		s.set(t, "synchronous_standby_names", "*")
	}
}

// failover kills the server, and makes its standby the primary.
func (s *server) failover(t testing.TB) {
	t.Helper()
	s.Kill()
	s.standby.sql(t, "postgres", "SELECT pg_promote()")
}

// set changes a setting of the running server.
func (s *server) set(t testing.TB, name, value string) {
	t.Helper()
	s.sql(t, "postgres", "ALTER SYSTEM SET "+name+" = '"+value+"'")
	s.sql(t, "postgres", "SELECT pg_reload_conf()")
	s.until(t, "postgres", "SELECT current_setting('"+name+"') = '"+value+"'")
	s.sql(t, "postgres", "CHECKPOINT") // its process tells the others, before that, whether a commit waits for a standby
}

// until waits for a condition. NULL is not yet: a standby that has just connected has replayed nothing.
func (s *server) until(t testing.TB, database, condition string) {
	t.Helper()
	c, err := s.Connect(t.Context(), "owner", database)
	require.NoError(t, err)
	defer func() { _ = c.Close(context.Background()) }()
	require.EventuallyWithT(t, func(at *assert.CollectT) {
		var is *bool
		require.NoError(at, c.QueryRow(t.Context(), condition).Scan(&is))
		require.True(at, is != nil && *is)
	}, 30*time.Second, 5*time.Millisecond, condition)
}

// durable has it write to the disk before it answers, as in production.
func (s *server) durable(t testing.TB) {
	t.Helper()
	s.Fsync = "on"
	s.restart(t)
}

// restart ends it as abruptly as it can happen.
func (s *server) restart(t testing.TB) {
	t.Helper()
	s.Kill()
	require.NoError(t, s.Start(t.Context()))
}

// sql runs statements as the owner of everything.
func (s *server) sql(t testing.TB, database, statements string) {
	t.Helper()
	require.NoError(t, s.SQL(t.Context(), database, statements))
}

// database makes a database with the table, and the role sbr with its rights.
func (s *server) database(t testing.TB) string {
	t.Helper()
	name, err := s.Database(t.Context())
	require.NoError(t, err)
	return name
}

// pool returns a pool of the role sbr, which ends with the test.
func (s *server) pool(t testing.TB, database string) *pgxpool.Pool {
	t.Helper()
	return newPool(t, s.URL("sbr", database))
}

func newPool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	c, err := postgres.Config(url, 5*time.Second)
	require.NoError(t, err)
	pool, err := pgxpool.NewWithConfig(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// store returns the store of payments-sbr over a pool of its own.
func (s *server) store(t testing.TB, database string) *postgres.Store {
	t.Helper()
	store, err := postgres.New(s.pool(t, database), "", "payments-sbr")
	require.NoError(t, err)
	return store
}
