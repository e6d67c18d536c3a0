// Package postgres keeps the record of a lease as one row of a table of PostgreSQL (12 or newer).
//
//	pool, err := pgxpool.New(ctx, "postgres://sbr@db-1,db-2/payments?target_session_attrs=read-write")
//	defer pool.Close()
//	store, err := postgres.New(pool, "sbr_lease", "payments-sbr")
//
// Schema is the table. The record is one column of JSON (lease.MarshalRecord); holder, token, ttl, renewed
// and verdict are columns that the server makes of it, for people. Nobody expires it: who is silent for too
// long is found out by those who watch, as with every store.
//
// # Guarantees
//
//   - A read and a write are one statement each, on the primary: a standby is refused with a sentence. Each
//     write gives the row a version at random, so no version comes back, neither after a deletion nor after
//     a restore.
//   - ErrConflict and ErrRefused mean certainly not written. Conflicts are a row that has moved on, and the
//     codes 40001 and 40P01. Refused are: no right, no such table, a wrong password, a server that is
//     read-only, a value that does not fit, and a row that is no record. A lost connection is unknown, and so
//     is a write to which the server adds a warning: a standby has perhaps not got it.
//   - A watch listens on the channel of the table, and reads the row at each word on it and every few
//     seconds. What is heard is a hint; what is read is the truth.
//
// # Non-guarantees
//
//   - With fsync or full_page_writes off, or synchronous_commit off, a crash of the server loses writes that
//     it acknowledged. With no synchronous standby, a failover does. Preflight does not refuse that; Risks
//     says it.
//   - A database that is restored from an older backup has forgotten grants and verdicts. The members tell it
//     again: see lease.Restore.
//   - A watch through a pooler that shares connections between transactions hears nothing, and reads.
//
// # Assumptions
//
//   - An old primary is stopped before a standby is promoted.
//   - Nobody else writes to the table.
package postgres
