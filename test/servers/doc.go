// Package servers runs the servers of lease stores for tests: PostgreSQL and FerretDB. Package kubetest runs
// Kubernetes, and etcd.
//
//	s, err := servers.NewPostgres(servers.Loopback(), "")
//	defer s.Close()
//	err = s.Init(ctx)
//	pool, err := s.Pool(ctx, "sbr", "postgres")
//
// # Guarantees
//
//   - A server ends with the process that started it, on Linux even if that process is killed.
//   - A server that is started again has its data and its address.
//
// # Non-guarantees
//
//   - Durability: PostgreSQL does not sync to the disk unless it is told to.
//   - Rights: everybody who reaches PostgreSQL may connect as anybody, and FerretDB knows no users.
package servers
