// Package report writes simulated runs as one HTML file that needs nothing else: what every member did over time, who saw whom, how the
// network was cut, who held the lease, and what each resolver had to say about it.
//
//	k := report.NewKeeper(total)
//	for … {
//		run := report.Run{Result: r, Sentence: …, Replay: …}
//		if k.Keep(&r) {
//			_, run.History = scenario.Record(s, seed)
//		}
//		runs = append(runs, run)
//	}
//	err := report.Write(w, runs)
//
// # Guarantees
//
//   - The page asks for nothing: no font, no script, no picture from anywhere. Its content security policy forbids it.
//   - Names and texts come from files that anybody may have written; they are text on the page, never markup or script.
//   - Without JavaScript the verdict, the lanes and the events of the first run are there; on paper those of the run that is shown.
//   - Nothing on the page depends on colour alone.
//   - The same runs give the same bytes.
//
// # Non-guarantees
//
//   - Of very many runs, or of runs in which very much happens, only a part is told in full; the page says of which. See Keeper.
//   - In a cluster of more than 24 members, those with equal histories share one lane, whose times are those in the middle.
//
// # Assumptions
//
//   - A browser of 2024 or later (it uses the CSS function light-dark).
package report
