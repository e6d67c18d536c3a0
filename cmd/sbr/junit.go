package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/explore"
)

// simulateJUnit is the report that CI servers read: a suite for each scenario, a case for each seed. It is
// written suite by suite, for the runs of many seeds need not fit into memory; a suite says how many of its
// cases failed before it shows them, so it is kept that long, and a long one is written in parts.
//
// What their viewers know differs: test/formats/testdata/junit.xsd is what all of them take.
type simulateJUnit struct {
	to      io.Writer
	begun   bool
	suite   *junitSuite
	file    *scenarioFile // of that suite
	took    time.Duration // by its runs so far
	classes map[string]string
}

// junitPart is how many cases are written as one suite at most.
const junitPart = 10_000

type junitSuites struct {
	XMLName  xml.Name      `xml:"testsuites"`
	Name     string        `xml:"name,attr"`
	Tests    uint64        `xml:"tests,attr"`
	Failures uint64        `xml:"failures,attr"`
	Errors   uint64        `xml:"errors,attr"`
	Time     string        `xml:"time,attr"`
	Suites   []*junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	XMLName    xml.Name        `xml:"testsuite"`
	Name       string          `xml:"name,attr"`
	Tests      uint64          `xml:"tests,attr"`
	Failures   uint64          `xml:"failures,attr"`
	Errors     uint64          `xml:"errors,attr"`
	Skipped    uint64          `xml:"skipped,attr"`
	Time       string          `xml:"time,attr"`
	Properties []junitProperty `xml:"properties>property,omitempty"`
	Cases      []junitCase     `xml:"testcase"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Name string `xml:"name,attr"`
	// ClassName is what GitLab shows as the suite; together with Name it must be unique, or all but the first
	// are dropped. Jenkins refuses a report in which a case has an attribute for its file: that is a property
	// of the suite.
	ClassName string        `xml:"classname,attr"`
	Time      string        `xml:"time,attr"`
	Failure   *junitFailure `xml:"failure,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// add adds a case, whose class is the suite.
func (s *junitSuite) add(name string, took time.Duration, failed *junitFailure) {
	s.Cases = append(s.Cases, junitCase{Name: name, ClassName: s.Name, Time: seconds(took), Failure: failed})
	if s.Tests++; failed != nil {
		s.Failures++
	}
}

// seconds is how JUnit writes a time.
func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

func (w *simulateJUnit) result(r *played) error {
	if w.file != r.file || len(w.suite.Cases) == junitPart {
		if err := w.flush(); err != nil {
			return err
		}
		w.file, w.took = r.file, 0
		w.suite = &junitSuite{Name: w.class(r), Properties: []junitProperty{{Name: "file", Value: r.file.path}}}
	}
	var failed *junitFailure
	if !r.Passed {
		failed = &junitFailure{
			Message: r.Failures[0], Type: "simulation",
			Text: strings.Join(r.Failures, "\n") + "\nreplay: " + r.replay() + "\ntrace-hash: " + r.TraceHash + "\n",
		}
	}
	w.suite.add(fmt.Sprintf("%s, seed %d", r.Scenario, r.Seed), r.took, failed)
	w.took += r.took
	w.suite.Time = seconds(w.took)
	return nil
}

// class is the name of the scenario, with that of its file if another file has taken it.
func (w *simulateJUnit) class(r *played) string {
	if w.classes == nil {
		w.classes = make(map[string]string)
	}
	if file, taken := w.classes[r.Scenario]; taken && file != r.file.path {
		return fmt.Sprintf("%s (%s)", r.Scenario, r.file.path)
	}
	w.classes[r.Scenario] = r.file.path
	return r.Scenario
}

// flush writes the suite that is complete.
func (w *simulateJUnit) flush() error {
	if !w.begun {
		w.begun = true
		if _, err := io.WriteString(w.to, xml.Header+`<testsuites name="sbr simulate">`+"\n"); err != nil {
			return err
		}
	}
	if w.suite == nil {
		return nil
	}
	text, err := xml.MarshalIndent(w.suite, "  ", "  ")
	if err != nil {
		return err
	}
	w.suite = nil
	_, err = w.to.Write(append(text, '\n'))
	return err
}

func (w *simulateJUnit) end(summary) error {
	if err := w.flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w.to, "</testsuites>\n")
	return err
}

// junit is the report that CI servers read: a case for the runs, for each kind of failure, and for the
// transitions.
func (o *exploreRandom) junit(to io.Writer, r *explore.Report) error {
	s := &junitSuite{Name: "random exploring", Properties: []junitProperty{{Name: "version", Value: r.Version}}}
	var interrupted, untaken *junitFailure
	if r.Interrupted {
		interrupted = &junitFailure{
			Message: "interrupted", Type: "simulation",
			Text: fmt.Sprintf("interrupted after %s\n", count(r.Runs, "run")),
		}
	}
	if o.require && len(r.Never) > 0 { // it fails only if that was asked for
		untaken = &junitFailure{
			Message: count(len(r.Never), "known transition") + " never taken", Type: "coverage",
			Text: strings.Join(r.Never, "\n") + "\n",
		}
	}
	s.add(countThousands(r.Runs, "run"), time.Duration(r.Elapsed), interrupted)
	for _, f := range r.Failures {
		s.add(f.Promise+": "+f.Shape, 0, &junitFailure{ // the same name every night, and no other kind has it
			Message: f.Text, Type: "simulation", Text: f.Text + "\nreplay: " + f.Replay + "\nsmallest scenario:\n" +
				f.Scenario,
		})
	}
	s.add("every known transition is taken", 0, untaken)
	s.Time = seconds(time.Duration(r.Elapsed))
	all := junitSuites{Name: "sbr explore random", Tests: s.Tests, Failures: s.Failures, Time: s.Time,
		Suites: []*junitSuite{s}}
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(to, "%s%s\n", xml.Header, text)
	return err
}
