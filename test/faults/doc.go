// Package faults strikes the requests of a lease with faults, on a real server, and compares what becomes of them with a table.
//
// A cell is one fault at one step of a lease: reading, creating the record, updating it, a heartbeat, a release, a watch. Party A is struck;
// party B reaches the server directly, and so does an observer. In every cell a guard looks at both parties all the time: two never hold the
// lease (S3), and what A was told is compared with what the observer reads right then (S4).
//
// Matrix strikes what passes a TCP proxy, and knows no protocol: it is for every store. Package kubernetes has a matrix of its own over HTTP,
// on the same T, Party, Guard and Sightings.
package faults
