package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
)

// simulateJUnit is the report that CI servers read: a suite for each scenario, a case for each seed. Their viewers disagree on what
// is optional, so every count and time that any of them knows is there.
type simulateJUnit struct {
	to     io.Writer
	suites []*junitSuite
	file   *scenarioFile // of the last suite
	took   time.Duration // by its runs so far
}

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
	Name     string      `xml:"name,attr"`
	Tests    uint64      `xml:"tests,attr"`
	Failures uint64      `xml:"failures,attr"`
	Errors   uint64      `xml:"errors,attr"`
	Skipped  uint64      `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name      string        `xml:"name,attr"`
	ClassName string        `xml:"classname,attr"`
	File      string        `xml:"file,attr"`
	Time      string        `xml:"time,attr"`
	Failure   *junitFailure `xml:"failure,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// seconds is how JUnit writes a time.
func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

func (w *simulateJUnit) result(r *played) error {
	if w.file != r.file {
		w.file, w.took = r.file, 0
		w.suites = append(w.suites, &junitSuite{Name: r.Scenario})
	}
	suite := w.suites[len(w.suites)-1]
	c := junitCase{
		Name: fmt.Sprintf("%s, seed %d", r.Scenario, r.Seed), ClassName: r.Scenario, File: r.file.path, Time: seconds(r.took),
	}
	suite.Tests++
	if !r.Passed {
		suite.Failures++
		c.Failure = &junitFailure{
			Message: r.Failures[0], Type: "simulation",
			Text: strings.Join(r.Failures, "\n") + "\nreplay: " + r.replay() + "\ntrace-hash: " + r.TraceHash + "\n",
		}
	}
	suite.Cases = append(suite.Cases, c)
	w.took += r.took
	suite.Time = seconds(w.took)
	return nil
}

func (w *simulateJUnit) end(s summary) error {
	all := junitSuites{Name: "sbr simulate", Tests: s.runs, Failures: s.failed, Time: seconds(s.took), Suites: w.suites}
	if _, err := io.WriteString(w.to, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w.to)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w.to, "\n")
	return err
}
