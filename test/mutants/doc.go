// Mutants proves that the tests have teeth: it seeds bugs into the resolver, the lease and what drives them,
// one at a time, and runs the suite against each of them.
//
//	go run -C test ./mutants                       all mutants, stops at the first test that catches each
//	go run -C test ./mutants --tier each           and measures what the simulator finds by itself
//	go run -C test ./mutants --only 'verdict-*'    some of them
//
// Exit statuses: 0 all caught, 1 some were not, 2 a bad mutant, bad usage, or a tree that fails by itself (go
// run turns 2 into 1).
//
// A mutant is a text archive in testdata: what the bug is, the promise it endangers, and the lines it
// changes; see parseMutant. The tree is never touched: the changed file is laid over it (go build -overlay).
//
// # Guarantees
//
//   - A step that has caught a mutant passes on the tree as it is, so that the failure is the mutant's.
//   - Caught means that a named test failed, or that a scenario did. A mutant that does not apply, does not
//     compile, or makes the tools fail in any other way is an error, not a catch; so is a mutant that runs
//     out of time, unless it says that it hangs.
//   - A mutant that names checkers of the simulator counts only if those report it.
//   - With --tier each the simulator must find a good part of all mutants by itself (leastAlone).
//
// # Non-guarantees
//
//   - That every mutant is caught does not say that every bug is. The list is of bugs that people make here.
//
// # Assumptions
//
//   - It runs inside the module, with the go command that builds it, and nobody edits the tree meanwhile.
package main
