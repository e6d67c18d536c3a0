package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/serf-sbr/serf-sbr/lease"
)

// meanings are what codes of the server (SQLSTATE, or a class of it) say for certain. All others are
// "unknown".
var meanings = []struct {
	codes  []string
	is     error
	advice string
}{
	{[]string{"40001", "40P01"}, lease.ErrConflict, ""}, // the transaction was undone because of another one
	{[]string{"25006"}, lease.ErrRefused, "the server is read-only, as a standby is: name the primary, or all servers: "},
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
		if ok && slices.ContainsFunc(m.codes, func(code string) bool { return strings.HasPrefix(told.Code, code) }) {
			return fmt.Errorf("postgres: %s: %w: %s%w", s, m.is, m.advice, err)
		}
	}
	return fmt.Errorf("postgres: %s: %w", s, err)
}

func (s *Store) refused(format string, args ...any) error {
	return fmt.Errorf("postgres: %s: %w: %w", s, lease.ErrRefused, fmt.Errorf(format, args...))
}
