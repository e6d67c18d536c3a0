package postgres_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/postgres"
	"github.com/serf-sbr/serf-sbr/test/costs"
)

func BenchmarkCosts(b *testing.B) {
	s := newServer(b)
	s.durable(b)
	database := s.database(b)
	url := func(at string) string { return fmt.Sprintf("postgres://owner@%s/%s", at, database) }
	costs.Run(b, &costs.Target{
		Address: s.Address(),
		Open: func(b *testing.B, at, name string) lease.Store { // as a configuration opens it: all share their connections
			b.Setenv(postgres.URLVariable, url(at))
			store, err := lease.Open(b.Context(), postgres.Key,
				lease.Spec{System: name, Decode: func(any) error { return nil }})
			require.NoError(b, err)
			b.Cleanup(func() { _ = store.(*postgres.Store).Close() })
			return store
		},
		Bare: func(b *testing.B, at, name, text string) func(context.Context) error {
			pool := newPool(b, url(at))
			_, err := pool.Exec(b.Context(), "INSERT INTO sbr_lease (name, version, record) VALUES ($1, '0', '{}')",
				name)
			require.NoError(b, err)
			version := 0
			return func(ctx context.Context) error {
				version++
				_, err := pool.Exec(ctx, "UPDATE sbr_lease SET version = $2, record = $3::jsonb WHERE name = $1 AND version = $4", pgx.QueryExecModeExec,
					name, strconv.Itoa(version), text, strconv.Itoa(version-1))
				return err
			}
		},
		Written: func(b *testing.B) (n int) {
			require.NoError(b, newPool(b, url(s.Address())).QueryRow(b.Context(),
				"SELECT txid_snapshot_xmax(txid_current_snapshot())").Scan(&n)) // only transactions that write have a number
			return n
		},
		Others: map[string]func(*testing.B, string, time.Duration) costs.Lock{
			"advisory lock": func(b *testing.B, at string, _ time.Duration) costs.Lock {
				pool := newPool(b, url(at))
				c, err := pool.Acquire(b.Context())
				require.NoError(b, err)
				b.Cleanup(c.Release)
				return &advisory{c}
			},
		},
	})
}

// advisory is PostgreSQL's lock of a session: it lasts as long as the server believes in the connection.
type advisory struct{ c *pgxpool.Conn }

func (l *advisory) Lock(ctx context.Context) error {
	_, err := l.c.Exec(ctx, "SELECT pg_advisory_lock(1)", pgx.QueryExecModeExec)
	return err
}

func (l *advisory) Unlock(ctx context.Context) error {
	_, err := l.c.Exec(ctx, "SELECT pg_advisory_unlock(1)", pgx.QueryExecModeExec)
	return err
}

// Crash: the server hears nothing of it.
func (l *advisory) Crash() {}
