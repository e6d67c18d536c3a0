// Package memory is a lease store inside one process, for tests, demonstrations and single-process programs.
//
// A Store is the record; each party reaches it through a View of its own, whose connection can be broken on purpose: down,
// slow, requests or responses lost, conflicts without a cause, writes that are committed after the client gave up.
//
// Guarantees: compare-and-swap on versions that never repeat, also across Delete and Restore; reads see the latest write;
// a watch never ends on an old state. Everything that waits does so by timers of package time, so it runs in virtual time
// under testing/synctest.
//
// Non-guarantees: nothing outlives the process, and nothing is shared with another one.
package memory
