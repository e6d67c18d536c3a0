package web

import "github.com/serf-sbr/serf-sbr/downing"

// Source is what the server shows. Its methods are called from several goroutines, each at most a few times a second for all feeds together
// and once for each other request. They must not block.
type Source interface {
	// Status is what the member sees now.
	Status() downing.Status
	// Health says whether the member is alive and ready now.
	Health() Health
	// Config is what is in effect.
	Config() Config
	// Journal returns the newest entries, oldest first. Their ids grow by at least one from entry to entry. A Journal does this.
	Journal() []Entry
}

// Health is what an orchestrator asks for. The zero value is neither alive nor ready.
type Health struct {
	// Live is red once the member is down or its loop is stuck: the process should be started again.
	Live Check
	// Ready is red whenever the member should not get work.
	Ready Check
}

// Check is one answer. The zero value is red.
type Check struct {
	// OK is green.
	OK bool
	// Reason is one line that says why it is red.
	Reason string
}

// Config is the configuration in effect. The zero value shows nothing.
type Config struct {
	// YAML is sbr.yaml with every default filled in and every secret left out.
	YAML string
	// Timings are what follows from it for a cluster of the present size.
	Timings []Timing
	// Warnings are settings that are unsafe, one sentence each.
	Warnings []string
}

// Timing is one computed time, in words.
type Timing struct {
	// Label says what takes so long.
	Label string
	// Larger is the time for the larger side of an even split, or for any side where Lone is empty.
	Larger string
	// Lone is the time for a member that is cut off alone.
	Lone string
}
