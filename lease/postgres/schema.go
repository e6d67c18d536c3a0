package postgres

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// DefaultTable keeps the records where the configuration names no other.
const DefaultTable = "sbr_lease"

// identifier is a table with its schema or without.
func identifier(table string) pgx.Identifier { return strings.Split(table, ".") }

// channel is what the trigger of the table notifies.
func channel(table string) string {
	parts := identifier(table)
	return parts[len(parts)-1]
}

// Schema is the SQL that makes the table, and gives the role (none if empty) the rights that a store needs.
// Running it again changes nothing.
func Schema(table, role string) string {
	name := identifier(table).Sanitize()
	parts := identifier(table)
	parts[len(parts)-1] += "_notify"
	notify := parts.Sanitize()
	sql := fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %[1]s (
  name    text PRIMARY KEY,
  version text NOT NULL,
  record  jsonb NOT NULL,
  holder  text GENERATED ALWAYS AS (record->>'holder') STORED,
  token   bigint GENERATED ALWAYS AS ((record->>'token')::bigint) STORED,
  ttl     text GENERATED ALWAYS AS (record->>'ttl') STORED,
  renewed text GENERATED ALWAYS AS (record->>'renewed') STORED,
  verdict jsonb GENERATED ALWAYS AS (record->'verdict') STORED
);
CREATE OR REPLACE FUNCTION %[2]s() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify(TG_TABLE_NAME, coalesce(NEW.name, OLD.name));
  RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS sbr_notify ON %[1]s;
CREATE TRIGGER sbr_notify AFTER INSERT OR UPDATE OR DELETE ON %[1]s
  FOR EACH ROW EXECUTE FUNCTION %[2]s();
`, name, notify)
	if role != "" {
		sql += fmt.Sprintf("GRANT SELECT, INSERT, UPDATE ON %s TO %s;\n", name, pgx.Identifier{role}.Sanitize())
	}
	return sql
}
