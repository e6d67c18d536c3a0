package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// DryRun implements lease.DryRunner: an insert and an update of no row need a primary and the rights.
func (s *Store) DryRun(ctx context.Context) error {
	_, inserting := s.change(ctx, `INSERT INTO %s (name, version, record) SELECT '', '', '{}' WHERE false`)
	_, updating := s.change(ctx, `UPDATE %s SET version = '', record = '{}' WHERE name = '' AND false`)
	return errors.Join(inserting, updating)
}

// Risks says what would lose a write that the server acknowledged, or keep others from hearing of it: a
// sentence each, with the way out.
func (s *Store) Risks(ctx context.Context) (risks []string, err error) {
	var fsync, pages, commit, standbys string
	var connected int
	var told bool
	err = s.pool.QueryRow(ctx, `SELECT current_setting('fsync'), current_setting('full_page_writes'),
		current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),
		(SELECT count(*) FROM pg_stat_replication),
		EXISTS (SELECT FROM pg_trigger WHERE tgrelid = $1::regclass AND tgname = 'sbr_notify' AND tgenabled <> 'D')`,
		plain, s.table).Scan(&fsync, &pages, &commit, &standbys, &connected, &told)
	if err != nil {
		return nil, s.wrap(err)
	}
	add := func(is bool, risk string) {
		if is {
			risks = append(risks, risk)
		}
	}
	add(fsync == "off", "fsync is off: a crash of the machine loses acknowledged writes, or the whole database: set it to on")
	add(pages == "off", "full_page_writes is off: a crash of the machine can destroy the table: set it to on")
	add(commit == "off", "synchronous_commit is off: a crash of the server loses the writes of the last moments, "+
		"although they were acknowledged: set it to on, for this role at least")
	add(connected > 0 && standbys == "", "the standbys are asynchronous: a failover loses acknowledged writes that they have not got: "+
		"set synchronous_standby_names")
	add(standbys != "" && commit == "local", "synchronous_commit is local: a failover loses acknowledged writes that no standby has got: "+
		"set it to on, for this role at least")
	add(standbys != "" && commit != "off" && commit != "local" && connected == 0,
		"no standby is connected, and writes wait for one: see synchronous_standby_names")
	add(!told, "the table has no trigger sbr_notify: a verdict is heard of only when members read beside their watch, up to a minute "+
		"later: run what sbr manifests --store postgres prints")
	return risks, nil
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
