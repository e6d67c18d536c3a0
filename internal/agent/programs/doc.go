// Package programs lets programs of this machine take part in the cluster through its agent: each of them has
// a singleton.Manager here, and runs when that one says so. Package attach says what travels, and has the
// other side.
//
//	h := programs.New(programs.Options{Cluster: provider, Configure: …})
//	http.Handle("/run", h.Run())          // programs attach here
//	h.Singletons()                        // what is attached
//	h.Leave(ctx)                          // before the member leaves: hands over
//	h.Close()
//
// # Guarantees
//
//   - Only programs of this machine are let in, and no web page. Two for one singleton are not.
//   - A program is attached once its member is armed, not before: a candidate that can run nothing yet would
//     be waited for by all others.
//   - A run ends when its program says that nothing is left of it, or, once it is gone without a word, when
//     nothing can be left: it was told to end when the connection ended, and its supervisor kills it when the
//     time is over that was promised last.
//   - Once this member is downed the program is told before any hook, and the agent's grace lasts until the
//     program has ended.
//   - A program that says nothing, reads nothing or says nonsense holds nobody else up.
//
// # Non-guarantees
//
//   - A program that was attached by something else than `sbr run` and does not end when it is told to
//     overlaps with the next one.
//   - Everybody who may connect to the loopback of this machine may attach a program, and so keep a singleton
//     here, unless http.token-file is set.
//
// # Assumptions
//
//   - The clock of the agent and that of `sbr run` run at the same rate: they are on one machine.
package programs
