// Package ledger is a real external resource for tests on several hosts: an append-only file behind HTTP,
// with a fence. Each run of a singleton or shard writes to it every few milliseconds, and the file shows
// afterwards what happened.
//
//	s, err := ledger.Open("rounds.jsonl")
//	defer s.Close()
//	go http.Serve(listener, s)
//
//	w := ledger.Writer{Client: ledger.Client{URL: "http://127.0.0.1:7000"}, Entry: ledger.Entry{Resource: "backup", Member: "n1"}, Token: token}
//	stats := w.Run(ctx) // start, work …, stop when ctx ends
//
//	lines, err := ledger.Client{URL: "http://127.0.0.1:7000"}.Lines(ctx)
//	ledger.Analyse(lines).WriteText(os.Stdout)
//
// As processes: internal/ledger/serve and internal/ledger/write. Without either:
//
//	curl -H "Fencing-Token: $SBR_TOKEN" -d '{"resource": "backup", "member": "n1", "run": "1", "seq": 1, "kind": "work"}' $LEDGER_URL/append
//	curl $LEDGER_URL/report
//
// # Guarantees
//
//   - One line for each attempt that reached the server, refused ones included, in the order in which they
//     were decided. Times are the server's own monotonic clock, and strictly grow; no clock of a writer
//     matters.
//   - Accepted lines of a resource never have a smaller token after a larger one: decision and line are one
//     step. Analyse checks this again.
//
// # Non-guarantees
//
//   - An attempt that did not reach the server is not in the file. A Writer counts such attempts.
//   - The server does not go on from an older file: its clock and its fences begin anew, so the file must be
//     new.
//
// # Assumptions
//
//   - A run is known by resource, member, run and token; no two runs share all four.
//   - Writers are trusted.
package ledger
