// Package report writes simulated runs as one HTML file that needs nothing else: what every member did over
// time, who saw whom, how the network was cut, who held the lease, and what each resolver had to say about
// it.
//
//	p := report.New()
//	for … {
//		err := p.Add(report.Run{Result: r, File: …, Sentence: …, Replay: …}, func() scenario.Result { return scenario.Run(s, seed) })
//	}
//	err := p.Write(w)
//
// The page is a static file; what is written into it is the JSON of the runs, as sbr simulate -o json has it,
// and its script draws that. Runs of one file that came to the same (survivors, downed members, decisions,
// kinds of failures) are one group, of which the first run is drawn, and of the others how their figures are
// spread.
//
// # Guarantees
//
//   - The page asks for nothing: no font, no script, no picture from anywhere. Its content security policy
//     forbids it.
//   - Names and texts come from files that any author may have written; they are text on the page, never
//     markup or script.
//   - Nothing on the page depends on colour alone.
//   - The same runs give the same bytes.
//   - Every run is counted; what there is no room for is said.
//
// # Non-guarantees
//
//   - Without JavaScript the page says only that it needs it.
//   - Of very many groups, or of runs in which very much happens, only a part is drawn.
//   - In a cluster of more than 24 members, those with equal histories share one lane, whose times are those
//     in the middle.
//
// # Assumptions
//
//   - A browser of 2024 or later (it uses the CSS function light-dark).
package report
