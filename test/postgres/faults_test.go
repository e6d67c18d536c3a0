package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/postgres"
	"github.com/serf-sbr/serf-sbr/test/faults"
)

func TestFaultMatrix(t *testing.T) {
	s := newServer(t)
	database := s.database(t)
	address := s.Address()
	faults.Matrix(t, &faults.Target{
		Address: address,
		Open: func(t *faults.T, at, name string) lease.Store {
			role := "sbr"
			if at == address {
				role = "owner"
			}
			c, err := postgres.Config(fmt.Sprintf("postgres://%s@%s/%s", role, at, database), 5*time.Second)
			require.NoError(t, err)
			pool, err := pgxpool.NewWithConfig(context.Background(), c)
			require.NoError(t, err)
			t.Cleanup(pool.Close)
			store, err := postgres.New(pool, "", name)
			require.NoError(t, err)
			return store
		},
		Wholes: map[string]faults.Whole{
			faults.Killed: {
				Begin: func() error { s.Kill(); return nil },
				End:   func() error { s.restart(t); return nil },
			},
			faults.Withdrawn: {
				Begin: func() error { s.sql(t, database, "REVOKE INSERT, UPDATE ON sbr_lease FROM sbr"); return nil },
				End:   func() error { s.sql(t, database, "GRANT INSERT, UPDATE ON sbr_lease TO sbr"); return nil },
			},
		},
	})
}
