package postgres

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

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
