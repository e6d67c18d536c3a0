package web

import (
	"sync"

	"github.com/serf-sbr/serf-sbr/downing"
)

// What a Journal keeps: the newest entries of any kind, and of verdicts more, because a noisy night must not push out what it was about.
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

// Journal keeps the newest occurrences: the last 200, and the last 50 verdicts. The zero value is empty and ready to use.
// It may be used from several goroutines.
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
		copy(list, list[1:])
		list = list[:most-1]
	}
	return append(list, e)
}

// Entries returns what is kept, oldest first. The verdicts in it are shared: do not change them.
func (j *Journal) Entries() []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	var all []Entry
	for _, v := range j.verdicts {
		if v.ID < j.entries[0].ID {
			all = append(all, v)
		}
	}
	all = append(all, j.entries...)
	return all
}
