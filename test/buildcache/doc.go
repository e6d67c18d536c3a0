// Package buildcache keeps programs that tests need and that take long to make: built once per version, into a folder of .cache.
//
// # Guarantees
//
//   - A folder that is there is complete: it is made beside its place and renamed. A failed or killed build leaves nothing that the next one
//     would take for finished.
//   - One build at a time in a cache, among all processes; whoever waits takes what the other one has built.
//   - Progress is told while it lasts: in one line that is rewritten on a terminal, in a line every 15 seconds elsewhere.
//
// # Non-guarantees
//
//   - Old versions are not removed.
//
// # Assumptions
//
//   - The key names everything that the build depends on, and the go command is on PATH.
package buildcache
