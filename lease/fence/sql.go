package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Table creates the table of Admit, one row for each resource, in SQLite and PostgreSQL.
const Table = `CREATE TABLE IF NOT EXISTS fence (resource TEXT PRIMARY KEY, token BIGINT NOT NULL)`

// Dialect is the SQL of a database. The zero Dialect is not one.
type Dialect struct{ raise, newest string }

// The dialects differ in their placeholders alone. The statement takes the row's lock also when it changes
// nothing.
var (
	// SQLite is for version 3.24 and newer.
	SQLite = Dialect{
		raise: `INSERT INTO fence (resource, token) VALUES (?, ?)
ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE fence.token <= excluded.token`,
		newest: `SELECT token FROM fence WHERE resource = ?`,
	}
	// PostgreSQL is for version 9.5 and newer, and for what speaks its SQL.
	PostgreSQL = Dialect{
		raise: `INSERT INTO fence (resource, token) VALUES ($1, $2)
ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE fence.token <= excluded.token`,
		newest: `SELECT token FROM fence WHERE resource = $1`,
	}
)

// Admit admits token for resource inside of tx. Call it before anything else in the transaction: it takes the
// lock of the resource, so what is read after it stays true until the commit. If the token is smaller than an
// admitted one, the error is a *StaleError; after any error, roll back. The token counts as admitted once tx
// commits.
func Admit(ctx context.Context, tx *sql.Tx, d Dialect, resource string, token uint64) error {
	if err := valid(token); err != nil {
		return err
	}
	if d == (Dialect{}) {
		return errors.New("fence: the dialect is empty: use SQLite or PostgreSQL")
	}
	done, err := tx.ExecContext(ctx, d.raise, resource, int64(token)) // not every driver takes a uint64
	if err != nil {
		return fmt.Errorf("fence: admit token %d for %q: %w", token, resource, err)
	}
	changed, err := done.RowsAffected()
	if err != nil {
		return fmt.Errorf("fence: admit token %d for %q: %w", token, resource, err)
	}
	if changed != 0 {
		return nil
	}
	stale := &StaleError{Token: token}
	if err := tx.QueryRowContext(ctx, d.newest, resource).Scan(&stale.Newest); err != nil {
		return fmt.Errorf("fence: read the newest token of %q: %w", resource, err)
	}
	return stale
}
