package postgres

import (
	"context"
	"errors"
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
	var fsync, pages, commit, standbys, limits string
	var connected int
	var told bool
	err = s.pool.QueryRow(ctx, `SELECT current_setting('fsync'), current_setting('full_page_writes'),
		current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),
		current_setting('statement_timeout') || coalesce(current_setting('transaction_timeout', true), '0'),
		(SELECT count(*) FROM pg_stat_replication),
		EXISTS (SELECT FROM pg_trigger WHERE tgrelid = $1::regclass AND tgname = 'sbr_notify' AND tgenabled <> 'D')`,
		plain, s.table).Scan(&fsync, &pages, &commit, &standbys, &limits, &connected, &told)
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
	add(connected > 0 && standbys == "",
		"the standbys are asynchronous: a failover loses acknowledged writes that they have not got: "+
			"set synchronous_standby_names")
	add(standbys != "" && commit == "local",
		"synchronous_commit is local: a failover loses acknowledged writes that no standby has got: "+
			"set it to on, for this role at least")
	add(standbys != "" && commit != "off" && commit != "local" && connected == 0,
		"no standby is connected, and writes wait for one: see synchronous_standby_names")
	add(standbys != "" && limits != "00",
		"statement_timeout or transaction_timeout ends the wait for a standby: "+
			"members may read a verdict that a failover loses: set both to 0 for this role")
	add(!told, "the table has no trigger sbr_notify: a verdict is heard of only when members read beside their watch, up to a minute "+
		"later: run what sbr manifests --store postgres prints")
	return risks, nil
}
