// Package memory is a lease store inside one process, for demonstrations, tests and single-process programs.
//
// # Guarantees
//
//   - Compare-and-swap on versions that never repeat, also across Delete and Restore. Reads see the latest
//     write.
//   - A watch never ends on an old state.
//
// # Non-guarantees
//
//   - Nothing outlives the process, and nothing is shared with another one.
//   - Nothing fails here. leasetest.NewMemory gives each party a connection that can be broken.
package memory
