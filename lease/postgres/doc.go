// Package postgres keeps the record of a lease as one row of a table of PostgreSQL.
//
//	config, err := postgres.Config("postgres://sbr@db-1,db-2/payments", 5*time.Second)
//	pool, err := pgxpool.NewWithConfig(ctx, config)
//	defer pool.Close()
//	store, err := postgres.New(pool, "sbr_lease", "payments-sbr")
//
// Schema is the table. The record is one column of JSON (lease.MarshalRecord), which a person can read.
// The store does not expire it: the parties that watch find a holder that is silent for too long, as with
// every store.
//
// # Guarantees
//
//   - A read and a write are one statement each, on the primary: a standby is refused with a sentence. Each
//     write gives the row a version at random, so no version comes back, neither after a deletion nor after
//     a restore.
//   - ErrConflict and ErrRefused mean certainly not written. Conflicts are a row that has moved on, and the
//     codes 40001 and 40P01. Refused are: no right, no such table, a wrong password, a server that is
//     read-only, a value that does not fit, and a row that is no record. A lost connection is unknown, and so
//     is a write to which the server adds a warning: a standby has perhaps not got it. A write that is given
//     up is not cancelled: until a synchronous standby has it, nobody reads it.
//   - All watches over one pool share one connection, which listens. A notification is a hint; what is read
//     is the truth. The stores of Factory for one URL share a pool of two connections, so that a process
//     has at most three. A new connection takes the user and the password from the file of the URL as it is
//     then; for another server the process is started again.
//
// # Non-guarantees
//
//   - With fsync, full_page_writes or synchronous_commit off, a crash of the server loses writes that it
//     acknowledged. With no synchronous standby, a failover does. Store.Risks says what applies.
//   - Where the server ends the wait for a standby (pg_cancel_backend, a time-out of the role), readers see a
//     write that a failover may lose. A write that is given up keeps its connection of the server until the
//     standby has it.
//   - A database that is restored from an older backup has forgotten grants and verdicts. The members tell it
//     again: see lease.Restore.
//   - A watch through a pooler that shares connections between transactions receives nothing: lease.Follow
//     reads beside it.
//   - Without the trigger of Schema a watch receives nothing, either.
//
// # Assumptions
//
//   - An old primary is stopped before a standby is promoted.
//   - A hand that changes a record gives the row another version as well.
package postgres
