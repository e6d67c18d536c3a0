// Package programs lets programs of this machine take part in the cluster through its agent: each program has
// a singleton.Manager here, and runs when the manager decides so. Package attach has the messages and the
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
//   - Only programs of this machine may attach, no web page, and only one for each singleton.
//   - A program is attached once its member is armed, not before: all others would wait for a candidate that
//     can run nothing yet.
//   - A run ends when its program reports that nothing is left of it or, if the connection is lost, when
//     nothing can be left: the program was asked to end with the connection, and its supervisor kills it when
//     the last promised time is over.
//   - When the agent dies without a lease the program has ended within the removal margin, before another
//     member may start one.
//   - Once this member is downed the program is asked to end before any hook runs, and the agent's grace
//     lasts until the program has ended.
//   - A program that sends nothing, reads nothing or sends invalid messages delays no other program.
//
// # Non-guarantees
//
//   - A program that was not attached by `sbr run` and does not end when asked to overlaps with the next run.
//   - Every user who may connect to the loopback of this machine may attach a program, and so keep a
//     singleton here, unless http.token-file is set.
//
// # Assumptions
//
//   - The clock of the agent and that of `sbr run` run at the same rate, on one machine.
package programs
