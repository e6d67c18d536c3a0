package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Codes of the server (SQLSTATE, or a class of it) by what they say for certain. All others are "unknown".
var (
	// conflicts: the transaction was undone because of another one.
	conflicts = []string{"40001", "40P01"}
	// refusals: no right; a password or a role that is wrong; no such database, schema, table or column; a
	// value that does not fit; a constraint; a limit of the program; no space for the row (where there is none
	// for the log, the server ends).
	refusals = []string{"42", "28", "3D000", "3F000", "22", "23", "54", "53100"}
)

const (
	readOnly = "25006"
	// warning is the key of a connection's data under which the last warning of the server is.
	warning = "sbr-warning"
)

// heed keeps a warning of the server: of a write it says that no standby has confirmed it.
func heed(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" {
		c.CustomData()[warning] = n.Message
	}
}

// wrap names the record, and says what is certain.
func (s *Store) wrap(err error) error {
	var told *pgconn.PgError
	if !errors.As(err, &told) {
		return fmt.Errorf("postgres: %s: %w", s, err)
	}
	is := func(codes ...string) bool {
		return slices.ContainsFunc(codes, func(code string) bool { return strings.HasPrefix(told.Code, code) })
	}
	switch {
	case is(conflicts...):
		return fmt.Errorf("postgres: %s: %w: %w", s, lease.ErrConflict, err)
	case is(readOnly):
		return s.refused("the server is read-only, as a standby is: name the primary, or all servers: %w", err)
	case is("42P01"):
		return s.refused("there is no such table: sbr manifests --store postgres prints what makes it: %w", err)
	case is(refusals...):
		return s.refused("%w", err)
	}
	return fmt.Errorf("postgres: %s: %w", s, err)
}

func (s *Store) refused(format string, args ...any) error {
	return fmt.Errorf("postgres: %s: %w: %w", s, lease.ErrRefused, fmt.Errorf(format, args...))
}
