package world

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// The hash covers when, who, what and about whom, whether or not the caller wants words.
func TestHash_CoversWhoWhenAndWhat(t *testing.T) {
	happen := map[string]func(w *World){
		"nothing":           func(*World) {},
		"n1 condemns n2":    func(w *World) { detects(w, 0, 1, true) },
		"n1 condemns n3":    func(w *World) { detects(w, 0, 2, true) },
		"n2 condemns n3":    func(w *World) { detects(w, 1, 2, true) },
		"n1 sees n2 again":  func(w *World) { detects(w, 0, 1, false) },
		"later":             func(w *World) { w.Run(2 * time.Second); detects(w, 0, 1, true) },
		"n1 forgets n2":     func(w *World) { w.note(w.procs[0], "forgets", "%s", w.procs[1]) },
		"n1 forgets n3":     func(w *World) { w.note(w.procs[0], "forgets", "%s", w.procs[2]) },
		"n1 goes down":      func(w *World) { w.note(w.procs[0], "down", "%s", "because of this") },
		"n1 goes down, too": func(w *World) { w.note(w.procs[0], "down", "%s", "because of that") },
		"the world has it":  func(w *World) { w.note(nil, "down", "%s", "because of this") },
		"attempt 1":         func(w *World) { w.note(w.procs[0], "reads", "attempt %d", uint64(1)) },
		"attempt 2":         func(w *World) { w.note(w.procs[0], "reads", "attempt %d", uint64(2)) },
		"one argument":      func(w *World) { w.note(nil, "x", "%s", "a") },
		"another one":       func(w *World) { w.note(nil, "x", "%s", "b") },
		"a number":          func(w *World) { w.note(nil, "x", "%d", 7) },
		"a time":            func(w *World) { w.note(nil, "x", "%v", 8*time.Second) },
		"names":             func(w *World) { w.note(nil, "x", "%v", names{"a", "b"}) },
		"other names":       func(w *World) { w.note(nil, "x", "%v", names{"a", "c"}) },
		"a fault":           func(w *World) { w.note(nil, "x", "%v", StoreFault{Access: Silent}) },
		"another fault":     func(w *World) { w.note(nil, "x", "%v", StoreFault{Access: Refused}) },
		"a partition": func(w *World) {
			w.net.group[1] = 1
			w.notePartition()
		},
		"another partition": func(w *World) {
			w.net.group[2] = 1
			w.notePartition()
		},
	}
	hashes := make(map[string]string)
	for name, f := range happen {
		w := healthy(t, func(o *Options) { o.Trace = false })
		w.Run(time.Second)
		f(w)
		words := healthy(t, nil)
		words.Run(time.Second)
		f(words)
		require.Equal(t, w.Hash(), words.Hash(), name)
		require.Empty(t, hashes[w.Hash()], "%s is the same as %s", name, hashes[w.Hash()])
		hashes[w.Hash()] = name
	}
}

func TestNames_AFewOfMany(t *testing.T) {
	require.Equal(t, "[a b]", names{"a", "b"}.String())
	many := make(names, 100)
	for i := range many {
		many[i] = sbr.ID("x")
	}
	require.Regexp(t, `^\[x( x){49}\] … 100 in all$`, many.String())
}
