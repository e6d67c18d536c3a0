package postgres_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/postgres"
)

// A lease in a table, which the SQL of postgres.Schema has made.
func Example() {
	config, err := postgres.Config("postgres://sbr@db-1,db-2/payments", 5*time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	store, err := postgres.New(pool, "sbr_lease", "payments-sbr")
	if err != nil {
		fmt.Println(err)
		return
	}
	own, err := lease.New(store, "n1", lease.DefaultSettings(), lease.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer own.Close()
	fmt.Println(store)
	// Output: sbr_lease/payments-sbr
}
