// Package postgres tests lease/postgres against real servers of PostgreSQL, which it starts on loopback from
// the programs of the Debian package (make postgres installs it).
//
// # What this cannot show
//
//   - A machine that loses its power: the servers run without fsync, and are killed as processes.
//   - Poolers, and the managed services of clouds.
package postgres
