// Package mongodb tests lease/mongodb against FerretDB, which it starts on loopback (test/ferretdb): a server
// that speaks MongoDB's wire protocol over SQLite, and for the suite of leasetest also over PostgreSQL.
//
// # What this cannot show
//
//   - Linearizable reads and majority writes: FerretDB ignores read and write concerns. The tests see that
//     they are asked for.
//   - Change streams: FerretDB has none, so that every watch here is a poll.
//   - Elections and rollbacks: FerretDB stands alone. That an error of a write concern means "unknown", and
//     what each code of a server means, is tested on the driver's errors in lease/mongodb.
//   - Users and rights: a server that is embedded has none.
//   - That one document is replaced atomically: FerretDB does not do so by itself; test/ferretdb lets one
//     command through at a time.
package mongodb
