package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
)

// What is not certain is neither a conflict nor a refusal. What can be brought about is tried on real
// servers, in test/postgres.
func TestWrap_WhatEachErrorMeans(t *testing.T) {
	t.Parallel()
	s := &Store{table: `"sbr_lease"`, name: "payments-sbr"}
	conflict, refused, unknown := lease.ErrConflict, lease.ErrRefused, error(nil)
	for code, want := range map[string]error{
		"40001": conflict, // serialization_failure
		"40P01": conflict, // deadlock_detected
		"40003": unknown,  // statement_completion_unknown
		"42501": refused,  // insufficient_privilege
		"42P01": refused,  // undefined_table
		"28P01": refused,  // invalid_password
		"28000": refused,  // invalid_authorization_specification
		"3D000": refused,  // invalid_catalog_name
		"22P05": refused,  // untranslatable_character
		"23514": refused,  // check_violation
		"25006": refused,  // read_only_sql_transaction
		"54000": refused,  // program_limit_exceeded
		"08006": unknown,  // connection_failure
		"53100": refused,  // disk_full: the statement was undone
		"53300": unknown,  // too_many_connections
		"55P03": conflict, // lock_not_available: the statement was undone
		"57014": unknown,  // query_canceled
		"57P01": unknown,  // admin_shutdown
		"57P03": unknown,  // cannot_connect_now
		"58030": unknown,  // io_error
		"XX000": unknown,  // internal_error
	} {
		told := &pgconn.PgError{Code: code, Message: "no"}
		err := s.wrap(fmt.Errorf("asking: %w", told))
		require.ErrorIs(t, err, told, code)
		assert.Equal(t, errors.Is(want, conflict), errors.Is(err, lease.ErrConflict), code)
		assert.Equal(t, errors.Is(want, refused), errors.Is(err, lease.ErrRefused), code)
		assert.ErrorContains(t, err, "postgres: sbr_lease/payments-sbr: ", code)
	}
	err := s.wrap(io.ErrUnexpectedEOF)
	assert.False(t, errors.Is(err, lease.ErrConflict) || errors.Is(err, lease.ErrRefused))
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]struct {
		connections int32
		primary     bool
	}{
		"postgres://sbr@db":                                                      {2, false},
		"postgres://sbr@db?pool_max_conns=9":                                     {9, false},
		"postgres://sbr@db-1,db-2":                                               {2, true},
		"host=db-1,db-2 user=sbr":                                                {2, true},
		"postgres://sbr@db-1,db-2?target_session_attrs=prefer-standby":           {2, true},
		"postgres://sbr@db?sslmode=prefer":                                       {2, false},
		"postgres://sbr@db-1:5433,db-1:5434?sslmode=disable&application_name=me": {2, true},
	} {
		c, err := Config(url, time.Second)
		require.NoError(t, err, url)
		assert.Equal(t, want.connections, c.MaxConns, url)
		assert.Equal(t, want.primary, c.ConnConfig.ValidateConnect != nil, url)
		assert.Equal(t, time.Second, c.ConnConfig.ConnectTimeout, url)
		assert.NotEmpty(t, c.ConnConfig.RuntimeParams["application_name"], url)
	}
}

func TestNew_NamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	_, err := New(nil, "", "payments-sbr")
	require.ErrorContains(t, err, "a pool is required")
	_, err = New(&pgxpool.Pool{}, "", "")
	require.ErrorContains(t, err, "a name is required")
	s, err := New(&pgxpool.Pool{}, "ops.leases", "payments-sbr")
	require.NoError(t, err)
	assert.Equal(t, "ops.leases/payments-sbr", s.String())
	assert.Contains(t, Schema(`a"; DROP TABLE b; --`, ""),
		`CREATE TABLE IF NOT EXISTS "a""; DROP TABLE b; --" (`)
}

// A password is rotated under a process that runs. A pool knows one place: another host is another pool's.
func TestFactory_NewConnectionsReadTheFileAgain(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "url")
	write := func(url string) { require.NoError(t, os.WriteFile(file, []byte(url+"\n"), 0o600)) }
	write("postgres://sbr:old@127.0.0.1:1/payments")
	opened, err := lease.Open(t.Context(), Key, lease.Spec{System: "payments", Decode: func(into any) error {
		return json.Unmarshal(fmt.Appendf(nil, `{"url-file": %q}`, file), into)
	}})
	require.NoError(t, err)
	s := opened.(*Store)
	defer func() { require.NoError(t, s.Close()) }()
	connects := func() string {
		c := s.pool.Config()
		require.NoError(t, c.BeforeConnect(t.Context(), c.ConnConfig))
		return fmt.Sprintf("%s:%s@%s", c.ConnConfig.User, c.ConnConfig.Password, c.ConnConfig.Host)
	}
	require.Equal(t, "sbr:old@127.0.0.1", connects())
	write("postgres://sbr-2:new@127.0.0.2:1/payments")
	require.Equal(t, "sbr-2:new@127.0.0.1", connects())
	for _, broken := range []string{"", "postgres://:::"} {
		write(broken)
		require.Equal(t, "sbr:old@127.0.0.1", connects(), "what was read first may still be right")
	}
}

// A server that is a standby by now takes no writes from a connection that was made while it was the primary. The
// name may lead to the primary again.
func TestWrite_WhatMeetsAStandbyConnectsAnew(t *testing.T) {
	t.Parallel()
	for code, connections := range map[string]int32{"25006": 2, "40001": 1, "42501": 1} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			c, err := Config("postgres://sbr@127.0.0.1:1/payments?sslmode=disable", time.Minute)
			require.NoError(t, err)
			var made atomic.Int32
			c.ConnConfig.DialFunc = func(context.Context, string, string) (net.Conn, error) {
				made.Add(1)
				client, server := net.Pipe()
				go refuseAll(server, code)
				return client, nil
			}
			pool, err := pgxpool.NewWithConfig(t.Context(), c)
			require.NoError(t, err)
			defer pool.Close()
			s, err := New(pool, "", "payments-sbr")
			require.NoError(t, err)
			for range 2 {
				_, err = s.Write(t.Context(), lease.Record{Token: 1}, "")
				told := (*pgconn.PgError)(nil)
				require.ErrorAs(t, err, &told)
				require.Equal(t, code, told.Code)
			}
			require.Equal(t, connections, made.Load())
		})
	}
}

// refuseAll is a server that answers each statement by that code.
func refuseAll(conn net.Conn, code string) {
	defer conn.Close()
	b, ready := pgproto3.NewBackend(conn, conn), &pgproto3.ReadyForQuery{TxStatus: 'I'}
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return
	}
	b.Send(&pgproto3.AuthenticationOk{})
	b.Send(ready)
	for b.Flush() == nil {
		for asked := false; !asked; {
			m, err := b.Receive()
			if err != nil {
				return
			}
			_, asked = m.(*pgproto3.Sync)
		}
		b.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: code, Message: "no"})
		b.Send(ready)
	}
}

// One record has one location, by whatever way a member gets there, and no other record has it.
func TestLocation(t *testing.T) {
	t.Parallel()
	at := func(name, table, url string) string {
		c, err := Config(url, time.Second)
		require.NoError(t, err)
		pool, err := pgxpool.NewWithConfig(t.Context(), c)
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		s, err := New(pool, table, name)
		require.NoError(t, err)
		return s.Location()
	}
	where := at("one", "", "postgres://sbr@a:5432,b:5433/payments")
	require.Equal(t, `postgres a:5432,b:5433, database payments, table "sbr_lease", lease one`, where)
	for url, same := range map[string]bool{
		"postgres://me:secret@b:5433,a:5432/payments?connect_timeout=3&sslmode=disable": true,
		"host=a,b port=5432,5433 dbname=payments user=payments":                         true,
		"host=a,b port=5432,5433 user=payments":                                         true, // the default
		"postgres://sbr@a:5432,b:5433/other":                                            false,
		"postgres://sbr@a:5432,b:5434/payments":                                         false,
		"postgres://sbr@a/payments":                                                     false,
	} {
		require.Equal(t, same, at("one", "sbr_lease", url) == where, url)
	}
	require.NotEqual(t, where, at("two", "", "postgres://sbr@a:5432,b:5433/payments"))
	require.NotEqual(t, where, at("one", "ops.sbr_lease", "postgres://sbr@a:5432,b:5433/payments"))
}

// The connection that listens is made as those of the pool are.
func TestWatch_ConnectsLikeThePool(t *testing.T) {
	t.Parallel()
	c, err := Config("postgres://sbr@127.0.0.1:1/payments", time.Second)
	require.NoError(t, err)
	expired := errors.New("no token")
	c.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { return expired }
	pool, err := pgxpool.NewWithConfig(t.Context(), c)
	require.NoError(t, err)
	defer pool.Close()
	s, err := New(pool, "", "payments-sbr")
	require.NoError(t, err)
	require.ErrorIs(t, s.Watch(t.Context(), func(lease.Snapshot) {}), expired)
}
