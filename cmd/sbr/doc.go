// Command sbr is the split brain resolver's program: it decides partitions on paper (decide), checks a
// configuration and computes its timings (config check), and shows the resolver at work.
//
// Each verb is one file. Exit statuses and error lines are a contract (see root.go): scripts rely on them.
package main
