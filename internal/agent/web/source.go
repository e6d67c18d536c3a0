package web

import (
	"slices"
	"sync"

	"github.com/serf-sbr/serf-sbr/downing"
)

// Source is what the server shows. Its methods are called from several goroutines, each at most a few times a
// second for all feeds together and once for each other request. They must not block.
type Source interface {
	// Status is what the member sees now.
	Status() downing.Status
	// Health says whether the member is alive and ready now.
	Health() Health
	// Config is what is in effect.
	Config() Config
	// Journal returns the newest entries, oldest first. Their ids grow by at least one from entry to entry. A
	// Journal does this.
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
	// Timings are what follows from it for a cluster of the present size: see timing.Report.Table.
	Timings [][]string `json:"timings"`
	// Warnings are settings that are unsafe, one sentence each.
	Warnings []string `json:"warnings"`
}

// What a Journal keeps: the newest entries of any kind, and of verdicts more, because a noisy night must not
// push out what it was about.
const (
	keepEntries  = 200
	keepVerdicts = 50
)

// Entry is one occurrence with its place in the history of this process.
type Entry struct {
	// ID grows from entry to entry. The first is 1.
	ID uint64
	downing.Occurrence
}

// Journal keeps the newest occurrences: the last 200, and the last 50 verdicts. The zero value is empty and
// ready to use. It may be used from several goroutines.
type Journal struct {
	mu       sync.Mutex
	last     uint64
	entries  []Entry
	verdicts []Entry
}

// Record adds an occurrence. It never blocks for long: it fits downing.Config.Observe.
func (j *Journal) Record(o downing.Occurrence) {
	o.Verdict = o.Verdict.Clone()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last++
	e := Entry{ID: j.last, Occurrence: o}
	j.entries = keep(j.entries, e, keepEntries)
	if o.Kind == downing.OccurredVerdict {
		j.verdicts = keep(j.verdicts, e, keepVerdicts)
	}
}

// keep appends to a list that forgets its oldest.
func keep(list []Entry, e Entry, most int) []Entry {
	if len(list) == most {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, e)
}

// Entries returns what is kept, oldest first. The verdicts in it are shared: do not change them.
func (j *Journal) Entries() []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(j.verdicts), func(v Entry) bool { return v.ID >= j.entries[0].ID })
	return append(all, j.entries...)
}
