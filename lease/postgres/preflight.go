package postgres

import (
	"context"
	"errors"
)

// Preflight tries what the store will do: it reads the record, and tries the writes in such a way that they
// change nothing. The error lists every problem on a line of its own; it wraps lease.ErrRefused where the store
// will not work as things are.
func (s *Store) Preflight(ctx context.Context) error {
	if _, err := s.Read(ctx); err != nil {
		return err // the writes would fail for the same reason
	}
	return s.DryRun(ctx)
}

// DryRun asks whether the next write would be taken: it tries an insert and an update of no row, which need a
// primary and the rights.
func (s *Store) DryRun(ctx context.Context) error {
	var problems []error
	for _, statement := range []string{
		`INSERT INTO %s (name, version, record) SELECT '', '', '{}' WHERE false`,
		`UPDATE %s SET version = '', record = '{}' WHERE name = '' AND false`,
	} {
		_, err := s.change(ctx, statement)
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}
