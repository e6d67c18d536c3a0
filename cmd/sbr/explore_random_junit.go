package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/explore"
)

// junit is the report that CI servers read: a case for the runs, for each kind of failure, and for the transitions.
func (o *reportOptions) junit(to io.Writer, r *explore.Report) error {
	suite := &junitSuite{Name: "random exploring", Properties: []junitProperty{{Name: "version", Value: r.Version}}}
	add := func(name string, took time.Duration, failed *junitFailure) {
		suite.Cases = append(suite.Cases, junitCase{Name: name, ClassName: suite.Name, Time: seconds(took), Failure: failed})
		if suite.Tests++; failed != nil {
			suite.Failures++
		}
	}
	var failed *junitFailure
	if r.Interrupted {
		failed = &junitFailure{Message: "interrupted", Type: "simulation", Text: fmt.Sprintf("interrupted after %s\n", count(r.Runs, "run"))}
	}
	add(thousandsOf(r.Runs, "run"), time.Duration(r.Elapsed), failed)
	for _, f := range r.Failures {
		add(f.Promise+": "+f.Shape, 0, &junitFailure{ // the same name every night, and no other kind has it
			Message: f.Text, Type: "simulation", Text: f.Text + "\nreplay: " + f.Replay + "\nsmallest scenario:\n" + f.Scenario,
		})
	}
	add("every known transition is taken", 0, o.junitTransitions(r))
	suite.Time = seconds(time.Duration(r.Elapsed))
	all := junitSuites{Name: "sbr explore random", Tests: suite.Tests, Failures: suite.Failures, Time: suite.Time, Suites: []*junitSuite{suite}}
	if _, err := io.WriteString(to, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(to)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(to, "\n")
	return err
}

// junitTransitions fails only if that was asked for.
func (o *reportOptions) junitTransitions(r *explore.Report) *junitFailure {
	if !o.require || len(r.Never) == 0 {
		return nil
	}
	return &junitFailure{
		Message: count(uint64(len(r.Never)), "known transition") + " never taken", Type: "coverage", Text: strings.Join(r.Never, "\n") + "\n",
	}
}
