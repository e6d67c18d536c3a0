// Package buildcache keeps programs that tests need and that take long to make: each is built once for its
// version, which a module of the repository pins, and for the Go toolchain, into .cache/programs.
// SBR_TEST_CACHE moves .cache.
//
//	path, err := buildcache.Etcd.Ensure(ctx, os.Stderr)
//	go run -C test ./buildcache/build etcd kube-apiserver
//
// # Guarantees
//
//   - A folder that is there is complete: it is made beside its place and renamed. A failed or killed build
//     leaves nothing that the next one would take for finished.
//   - One build of a program at a time, among all processes; a process that waits takes what the other one
//     has built.
//
// # Non-guarantees
//
//   - Old versions are not removed.
//
// # Assumptions
//
//   - The key names everything that the build depends on, the go command is on PATH, and it can download
//     modules or has them.
package buildcache
