// Package faults strikes the requests of a lease with faults, on a real server, and compares what becomes of
// them with a table.
//
// A cell is one fault at one step of a lease: reading, creating the record, updating it, a heartbeat, a
// release, a watch. Party A is struck; party B reaches the server directly, and so does an observer. In every
// cell a guard looks at both parties all the time: two never hold the lease (S3), and what A was told is
// compared with what the observer reads right then (S4).
//
// What strikes is a TCP proxy, which knows no protocol; other hands, on the record (steps.go); the server,
// which fails as a whole; or what a server of that kind may answer, which its tests add as rows.
package faults
