package web

import (
	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr/timing"
)

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
	Live Check `json:"live"`
	// Ready is red whenever the member should not get work.
	Ready Check `json:"ready"`
}

// Check is one answer. The zero value is red.
type Check struct {
	// OK is green.
	OK bool `json:"ok"`
	// Reason is one line that says why it is red.
	Reason string `json:"reason,omitempty"`
}

// Config is the configuration in effect. The zero value shows nothing.
type Config struct {
	// YAML is sbr.yaml with every default filled in and every secret left out.
	YAML string `json:"yaml"`
	// Timings are what follows from it for a cluster of the present size.
	Timings []timing.Row `json:"timings"`
	// Warnings are settings that are unsafe, one sentence each.
	Warnings []string `json:"warnings"`
}
