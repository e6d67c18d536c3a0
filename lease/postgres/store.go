package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Store keeps a record in one row. It is safe for concurrent use.
type Store struct {
	pool        *pgxpool.Pool
	table, name string // the table as SQL has it
	end         func() // ends the use of a pool that is the Factory's; nil: it is the caller's
}

var (
	_ lease.Store      = (*Store)(nil)
	_ lease.Watcher    = (*Store)(nil)
	_ lease.Identified = (*Store)(nil)
	_ lease.Located    = (*Store)(nil)
	_ lease.DryRunner  = (*Store)(nil)
)

// New returns the store of the row of that name, over a pool of Config. It sends nothing, and does not close
// the pool. An empty table is sbr_lease; it may have its schema before it, as in ops.sbr_lease.
func New(pool *pgxpool.Pool, table, name string) (*Store, error) {
	switch {
	case pool == nil:
		return nil, errors.New("postgres: a pool is required")
	case name == "":
		return nil, errors.New("postgres: a name is required, for example payments-sbr")
	case strings.ContainsRune(name+table, 0):
		return nil, errors.New("postgres: a name must not contain the character 0")
	}
	return &Store{pool: pool, table: identifier(table).Sanitize(), name: name}, nil
}

// String returns the table and the name.
func (s *Store) String() string { return strings.ReplaceAll(s.table, `"`, "") + "/" + s.name }

// Location implements lease.Located: the servers, the database, the table and the name.
func (s *Store) Location() string {
	conn := s.pool.Config().ConnConfig
	at := func(host string, port uint16) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }
	servers := []string{at(conn.Host, conn.Port)}
	for _, other := range conn.Fallbacks {
		servers = append(servers, at(other.Host, other.Port))
	}
	slices.Sort(servers)
	return fmt.Sprintf("postgres %s, database %s, table %s, lease %s",
		strings.Join(slices.Compact(servers), ","), cmp.Or(conn.Database, conn.User), s.table, s.name)
}

// Close ends the store. A pool that Factory made is closed with its last store.
func (s *Store) Close() error {
	if s.end != nil {
		s.end()
	}
	return nil
}

// plain sends a statement and its values in one request and prepares nothing, so that poolers can be used.
const plain = pgx.QueryExecModeExec

// Identity implements lease.Identified: the system identifier, which a primary shares with its standbys, the
// database, the table and the name.
func (s *Store) Identity(ctx context.Context) (string, error) {
	var system, database, table int64
	err := s.pool.QueryRow(ctx, `SELECT c.system_identifier, d.oid::int8, $1::regclass::oid::int8
		FROM pg_control_system() c, pg_database d WHERE d.datname = current_database()`,
		plain, s.table).Scan(&system, &database, &table)
	if err != nil {
		return "", s.wrap(err)
	}
	return fmt.Sprintf("postgres system %d, database %d, table %d, lease %s", system, database, table, s.name),
		nil
}

// Read implements lease.Store.
func (s *Store) Read(ctx context.Context) (lease.Snapshot, error) {
	var (
		standby         bool
		version, record *string
	)
	err := s.pool.QueryRow(ctx, `SELECT pg_is_in_recovery(), r.version, r.record::text
		FROM (SELECT 1) AS one LEFT JOIN `+s.table+` r ON r.name = $1`,
		plain, s.name).Scan(&standby, &version, &record)
	switch {
	case err != nil:
		return lease.Snapshot{}, s.wrap(err)
	case standby:
		s.pool.Reset() // the name may lead to the primary by now, and a connection lasts for an hour
		return lease.Snapshot{},
			s.refused("this server is a standby, which may be behind: name the primary, or all servers")
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
	record, err := lease.MarshalRecord(r)
	if err != nil {
		return "", s.refused("%w", err)
	}
	next := rand.Text() // no version comes back
	statement, values := insert, []any{s.name, next, string(record)}
	if prev != "" {
		statement, values = update, append(values, string(prev))
	}
	written, err := s.change(ctx, statement, values...)
	switch {
	case err != nil:
		return "", err
	case !written:
		return "", lease.ErrConflict
	}
	return lease.Version(next), nil
}

// The statements that change a row; the table stands for %[1]s. An update does not wait for another one, which may
// wait for a standby: each try would keep one more connection of the server waiting.
const (
	insert = `INSERT INTO %[1]s (name, version, record) VALUES ($1, $2, $3::jsonb) ON CONFLICT DO NOTHING`
	update = `WITH free AS (SELECT FROM %[1]s WHERE name = $1 FOR NO KEY UPDATE NOWAIT)
		UPDATE %[1]s r SET version = $2, record = $3::jsonb FROM free WHERE r.name = $1 AND r.version = $4`
)

// change runs one statement, and reports whether it has changed a row.
func (s *Store) change(ctx context.Context, statement string, values ...any) (bool, error) {
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return false, s.wrap(err)
	}
	defer c.Release()
	said := c.Conn().PgConn().CustomData()
	delete(said, warning)
	done, err := c.Exec(ctx, fmt.Sprintf(statement, s.table), append([]any{plain}, values...)...)
	if err != nil {
		if told, ok := errors.AsType[*pgconn.PgError](err); ok && told.Code == readOnly {
			s.pool.Reset() // as a read does that meets a standby
		}
		return false, s.wrap(err)
	}
	if text := said[warning]; text != nil { // it is committed here, and perhaps on no standby
		return false, fmt.Errorf("postgres: %s: the server warned: %v", s, text)
	}
	return done.RowsAffected() > 0, nil
}

// defaultTable keeps the records where the configuration names no other.
const defaultTable = "sbr_lease"

// channel is what the trigger of every table notifies: one connection listens for all stores of a process.
const channel = "sbr_lease"

// identifier is a table with its schema or without, as SQL wants it.
func identifier(table string) pgx.Identifier {
	if table == "" {
		table = defaultTable
	}
	return strings.Split(table, ".")
}

// Schema is the SQL that makes the table (empty: sbr_lease), and gives the role the rights that a store
// needs, and no other; an empty role gets none. Running it again changes nothing.
func Schema(table, role string) string {
	name := identifier(table)
	notify := append(pgx.Identifier{}, name...)
	notify[len(notify)-1] += "_notify"
	sql := fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %[1]s (
  name    text PRIMARY KEY,
  version text NOT NULL,
  record  jsonb NOT NULL
);
CREATE OR REPLACE FUNCTION %[2]s() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('%[3]s', left(coalesce(NEW.name, OLD.name), 1000));
  RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS sbr_notify ON %[1]s;
CREATE TRIGGER sbr_notify AFTER INSERT OR UPDATE OR DELETE ON %[1]s
  FOR EACH ROW EXECUTE FUNCTION %[2]s();
`, name.Sanitize(), notify.Sanitize(), channel)
	if role == "" {
		return sql
	}
	to := pgx.Identifier{role}.Sanitize()
	if len(name) > 1 {
		sql += fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s;\n", name[:len(name)-1].Sanitize(), to)
	}
	return sql + fmt.Sprintf("GRANT SELECT, INSERT, UPDATE ON %s TO %s;\n", name.Sanitize(), to)
}

// readOnly is the code (SQLSTATE) of a write that a standby refuses.
const readOnly = "25006"

// meanings are what codes of the server (SQLSTATE, or a class of it) say for certain. All others are
// "unknown".
var meanings = []struct {
	codes  []string
	is     error
	advice string
}{
	// The transaction was undone because of another one, or has not begun because of it.
	{[]string{"40001", "40P01", "55P03"}, lease.ErrConflict, ""},
	{[]string{readOnly}, lease.ErrRefused, "the server is read-only, as a standby is: name the primary, or all servers: "},
	{[]string{"42P01"}, lease.ErrRefused, "there is no such table: sbr manifests --store postgres prints what makes it: "},
	// No right; a password or a role that is wrong; no such database, schema, table or column; a value that
	// does not fit; a constraint; a limit of the program; no space for the row (where there is none for the
	// log, the server ends).
	{[]string{"42", "28", "3D000", "3F000", "22", "23", "54", "53100"}, lease.ErrRefused, ""},
}

// warning is the key of a connection's data under which the last warning of the server is.
const warning = "sbr-warning"

// heed keeps a warning of the server: of a write it says that no standby has confirmed it.
func heed(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" {
		c.CustomData()[warning] = n.Message
	}
}

// wrap names the record, and says what is certain.
func (s *Store) wrap(err error) error {
	told, ok := errors.AsType[*pgconn.PgError](err)
	for _, m := range meanings {
		if ok && slices.ContainsFunc(m.codes, func(code string) bool {
			return strings.HasPrefix(told.Code, code)
		}) {
			return fmt.Errorf("postgres: %s: %w: %s%w", s, m.is, m.advice, err)
		}
	}
	return fmt.Errorf("postgres: %s: %w", s, err)
}

func (s *Store) refused(format string, args ...any) error {
	return fmt.Errorf("postgres: %s: %w: %w", s, lease.ErrRefused, fmt.Errorf(format, args...))
}
