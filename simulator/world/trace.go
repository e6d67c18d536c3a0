package world

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"
)

// Entry is one thing that happened in a world.
type Entry struct {
	At     time.Duration
	Node   string // empty: the world, not one node
	Kind   string
	Detail string
}

// String is one line of a trace.
func (e Entry) String() string {
	return fmt.Sprintf("%9.3fs %-6s %-10s %s", e.At.Seconds(), e.Node, e.Kind, e.Detail)
}

// trace keeps what happened, or only its hash.
type trace struct {
	on      bool
	entries []Entry
	hash    uint64
}

func (w *World) note(p *process, kind, format string, args ...any) {
	w.trace.mix(w.now, p, kind)
	if !w.trace.on {
		return
	}
	e := Entry{At: w.now, Kind: kind, Detail: fmt.Sprintf(format, args...)}
	if p != nil {
		e.Node = string(p.id)
	}
	w.trace.entries = append(w.trace.entries, e)
}

// mix hashes when, who and what kind, so that the hash is the same with and without words.
func (t *trace) mix(at time.Duration, p *process, kind string) {
	const prime = 1099511628211
	h := t.hash ^ uint64(at)
	if p != nil {
		h = h*prime ^ uint64(p.index+1)
	}
	for i := range len(kind) {
		h = (h ^ uint64(kind[i])) * prime
	}
	t.hash = h*prime + 1
}

// Trace returns what happened, in order; empty without Options.Trace.
func (w *World) Trace() []Entry { return w.trace.entries }

// Hash identifies the run: equal runs have equal hashes.
func (w *World) Hash() string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d %v", w.trace.hash, w.seq, w.now)
	return fmt.Sprintf("%016x", h.Sum64())
}

// Story returns the trace as text.
func (w *World) Story() string {
	var b strings.Builder
	for _, e := range w.trace.entries {
		b.WriteString(e.String())
		b.WriteByte('\n')
	}
	return b.String()
}
