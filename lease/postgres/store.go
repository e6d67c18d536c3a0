package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/serf-sbr/serf-sbr/lease"
)

// readEvery is how often a watch reads without having heard anything.
const readEvery = 5 * time.Second

// Store keeps a record in one row. It is safe for concurrent use.
type Store struct {
	pool        *pgxpool.Pool
	table, name string
	owned       bool // the pool is the Store's to close
}

var (
	_ lease.Store      = (*Store)(nil)
	_ lease.Watcher    = (*Store)(nil)
	_ lease.Identified = (*Store)(nil)
)

// New returns the store of the row of that name. It sends nothing, and does not close the pool. An empty table
// is DefaultTable.
func New(pool *pgxpool.Pool, table, name string) (*Store, error) {
	switch {
	case pool == nil:
		return nil, errors.New("postgres: a pool is required")
	case name == "":
		return nil, errors.New("postgres: a name is required, for example payments-sbr")
	}
	if table == "" {
		table = DefaultTable
	}
	return &Store{pool: pool, table: table, name: name}, nil
}

// String returns the table and the name.
func (s *Store) String() string { return s.table + "/" + s.name }

// Close closes the pool if Factory made it.
func (s *Store) Close() error {
	if s.owned {
		s.pool.Close()
	}
	return nil
}

func (s *Store) sql(format string) string { return fmt.Sprintf(format, identifier(s.table).Sanitize()) }

// Identity implements lease.Identified: the system identifier, which a primary shares with its standbys, the
// database, the table and the name.
func (s *Store) Identity(ctx context.Context) (string, error) {
	var system, database, table int64
	err := s.pool.QueryRow(ctx, `SELECT c.system_identifier, d.oid::int8, $1::regclass::oid::int8
		FROM pg_control_system() c, pg_database d WHERE d.datname = current_database()`,
		identifier(s.table).Sanitize()).Scan(&system, &database, &table)
	if err != nil {
		return "", s.wrap(err)
	}
	return fmt.Sprintf("postgres system %d, database %d, table %d, lease %s", system, database, table, s.name), nil
}

// querier is a pool or one connection.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Read implements lease.Store.
func (s *Store) Read(ctx context.Context) (lease.Snapshot, error) { return s.read(ctx, s.pool) }

func (s *Store) read(ctx context.Context, q querier) (lease.Snapshot, error) {
	var (
		standby         bool
		version, record *string
	)
	err := q.QueryRow(ctx, s.sql(`SELECT pg_is_in_recovery(), r.version, r.record::text
		FROM (SELECT 1) AS one LEFT JOIN %s r ON r.name = $1`), s.name).Scan(&standby, &version, &record)
	switch {
	case err != nil:
		return lease.Snapshot{}, s.wrap(err)
	case standby:
		return lease.Snapshot{}, s.refused("this server is a standby, which may be behind: name the primary, or all servers")
	case version == nil:
		return lease.Snapshot{}, nil
	}
	r, err := lease.UnmarshalRecord([]byte(*record))
	if err != nil {
		return lease.Snapshot{}, s.refused("the row is not the record of a lease: %w", err)
	}
	return lease.Snapshot{Record: r, Version: lease.Version(*version)}, nil
}

// Write implements lease.Store.
func (s *Store) Write(ctx context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
	if err := r.Validate(); err != nil {
		return "", s.refused("%w", err)
	}
	record, err := lease.MarshalRecord(r)
	if err != nil {
		return "", s.refused("%w", err)
	}
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return "", s.wrap(err)
	}
	defer c.Release()
	warned := c.Conn().PgConn().CustomData()
	delete(warned, warning)
	next := rand.Text()
	var done pgconn.CommandTag
	if prev == "" {
		done, err = c.Exec(ctx, s.sql(`INSERT INTO %s (name, version, record) VALUES ($1, $2, $3::text::jsonb) ON CONFLICT DO NOTHING`),
			s.name, next, string(record))
	} else {
		done, err = c.Exec(ctx, s.sql(`UPDATE %s SET version = $2, record = $3::text::jsonb WHERE name = $1 AND version = $4`),
			s.name, next, string(record), string(prev))
	}
	switch {
	case err != nil:
		return "", s.wrap(err)
	case done.RowsAffected() == 0:
		return "", lease.ErrConflict
	case warned[warning] != nil: // it is written here, and perhaps nowhere else
		return "", fmt.Errorf("postgres: %s: the server warned: %v", s, warned[warning])
	}
	return lease.Version(next), nil
}

// Watch implements lease.Watcher. It keeps one connection of its own.
func (s *Store) Watch(ctx context.Context, fn func(lease.Snapshot)) error {
	c, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return s.wrap(err)
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	if _, err := c.Exec(ctx, "LISTEN "+pgx.Identifier{channel(s.table)}.Sanitize()); err != nil {
		return s.wrap(err)
	}
	for last := lease.Version("\x00"); ; {
		now, err := s.read(ctx, c)
		if err != nil {
			return err
		}
		if now.Version != last {
			last = now.Version
			fn(now)
		}
		if err := s.hear(ctx, c); err != nil {
			return err
		}
	}
}

// hear waits for a word about this row, or until it is time to read.
func (s *Store) hear(ctx context.Context, c *pgx.Conn) error {
	quiet, cancel := context.WithTimeout(ctx, readEvery)
	defer cancel()
	for {
		word, err := c.WaitForNotification(quiet)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case quiet.Err() != nil:
			return nil
		case err != nil:
			return s.wrap(err)
		case word.Payload == s.name:
			return nil
		}
	}
}
