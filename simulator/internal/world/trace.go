package world

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// trace is the hash of what happened.
type trace struct{ hash uint64 }

// note notes that something happens. What it speaks of is part of the hash.
func (w *World) note(p *process, kind, format string, args ...any) {
	w.trace.mix(w.now, p, kind)
	for _, a := range args {
		w.trace.argument(a)
	}
	w.say(p, kind, format, args...)
}

// wordy reports whether the caller wants words.
func (w *World) wordy() bool { return w.history != nil }

func (w *World) say(p *process, kind, format string, args ...any) {
	if w.wordy() {
		w.history.heard(p, kind, fmt.Sprintf(format, args...))
	}
}

func (w *World) notePartition() {
	w.trace.mix(w.now, nil, "partition")
	for _, g := range w.net.group {
		w.trace.number(uint64(g))
	}
	if w.wordy() {
		w.say(nil, "partition", "%s", w.groupNames())
	}
}

// prime is that of FNV-1a, which hashes the trace.
const prime = 1099511628211

// mix hashes when, who and what kind, so that the hash is the same with and without words.
func (t *trace) mix(at time.Duration, p *process, kind string) {
	t.number(uint64(at))
	if p != nil {
		t.number(uint64(p.index + 1))
	}
	t.text(kind)
}

// number hashes one number. A multiplication alone never carries a high bit down, so the upper half is folded
// in.
func (t *trace) number(n uint64) {
	h := (t.hash ^ n) * prime
	t.hash = (h^h>>32)*prime + 1
}

func (t *trace) text(s string) {
	h := t.hash
	for ; len(s) >= 8; s = s[8:] {
		h = (h ^ (uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56)) * prime
		h ^= h >> 32
	}
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * prime
	}
	t.hash = h
	t.number(uint64(len(s)))
}

func (t *trace) ids(all []sbr.ID) {
	for _, id := range all {
		t.text(string(id))
	}
	t.number(uint64(len(all)))
}

// argument hashes what a note speaks of.
func (t *trace) argument(a any) {
	switch a := a.(type) {
	case string:
		t.text(a)
	case sbr.ID:
		t.text(string(a))
	case names:
		t.ids(a)
	case *process:
		t.number(uint64(a.index))
	case int:
		t.number(uint64(a))
	case uint64:
		t.number(a)
	case time.Duration:
		t.number(uint64(a))
	default:
		t.text(fmt.Sprint(a))
	}
}

// names are incarnations in a note: a few of many.
type names []sbr.ID

// String is for traces.
func (n names) String() string {
	const limit = 50
	if len(n) <= limit {
		return fmt.Sprint([]sbr.ID(n))
	}
	return fmt.Sprintf("%v … %d in all", []sbr.ID(n[:limit]), len(n))
}

// Hash identifies the run: equal runs have equal hashes.
func (w *World) Hash() string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d %d", w.trace.hash, w.seq, w.now)
	return fmt.Sprintf("%016x", h.Sum64())
}
