package linear

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Options of a History. The zero Options is for runs in which nobody expires.
type Options struct {
	// Expiring says that holders may expire in this run.
	Expiring bool
	// Tokens, where holders expire, returns the tokens under which writes with a nonce were committed: an
	// attempt may have been granted and replaced again before it was answered with Held. Nil: that does not
	// happen.
	Tokens func(nonce string) []uint64
}

// History is what the clients of one lease saw. It is safe for concurrent use.
type History struct {
	opts  Options
	clock atomic.Int64

	mu    sync.Mutex
	ops   []porcupine.Operation
	open  []porcupine.Operation
	tally map[string]int
	// clients by index, for the sets.
	clients int
}

// New returns an empty history.
func New(o Options) *History { return &History{opts: o, tally: map[string]int{}} }

// now orders calls and returns. It is a counter: equal times of a coarse clock would hide what came first.
func (h *History) now() int64 { return h.clock.Add(1) }

func (h *History) add(client int, in input, called int64, out output) {
	returned := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Call: called, Output: out,
		Return: returned})
	h.tally[tallied(in, out)]++
}

// pending notes what may take place at any time after called.
func (h *History) pending(client int, in input, called int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = append(h.open, porcupine.Operation{ClientId: client, Input: in, Call: called, Output: output{}})
	h.tally[tallied(in, output{})]++
}

func tallied(in input, out output) string {
	switch in.action {
	case acquire:
		if out.superseded {
			return "superseded"
		}
		return out.kind.String()
	case release:
		return out.released.String()
	case look:
		if out.token == 0 {
			return "check-no"
		}
		return "check-yes"
	default:
		return map[action]string{read: "read", lost: "lost", lateGrant: "late-grant",
			lateFree: "late-free"}[in.action]
	}
}

// Tally counts the answers by kind, so that a test can tell that much was going on.
func (h *History) Tally() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.tally)
}

// operations is the whole history: what is still open may take place up to the end.
func (h *History) operations() []porcupine.Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := h.now()
	all := append([]porcupine.Operation{}, h.ops...)
	for _, op := range h.open {
		op.Return = last + 2
		all = append(all, op)
	}
	return append(all, porcupine.Operation{ClientId: h.clients, Input: input{action: end}, Call: last,
		Output: output{}, Return: last + 1})
}

// Check reports an error if the history cannot be explained, or if no explanation was found within the
// timeout. The error names a file in dir (empty: the folder for temporary files), which shows the history in
// a browser.
func (h *History) Check(timeout time.Duration, dir string) error {
	ops := h.operations()
	m := model(h.opts.Expiring, shownIn(ops))
	// First without the picture, which costs memory.
	result := porcupine.CheckOperationsTimeout(m, ops, timeout)
	if result == porcupine.Ok {
		return nil
	}
	_, info := porcupine.CheckOperationsVerbose(m, ops, timeout)
	what := "no order of these operations explains what was seen"
	if result == porcupine.Unknown {
		what = fmt.Sprintf("no explanation was found in %v", timeout)
	}
	path, err := picture(m, info, dir)
	if err != nil {
		path = err.Error()
	}
	return fmt.Errorf("linear: %s: %s (of %d operations); to look at it: %s\n%s", result, what, len(ops), path,
		stuck(m, info, ops))
}

func picture(m porcupine.Model, info porcupine.LinearizationInfo, dir string) (string, error) {
	file, err := os.CreateTemp(dir, "history-*.html")
	if err != nil {
		return "", err
	}
	return file.Name(), errors.Join(porcupine.Visualize(m, info, file), file.Close())
}

// Keeper is a test: *testing.T.
type Keeper interface{ ArtifactDir() string }

// Artifacts is the folder in which go test keeps what t leaves behind, if it was asked to with -artifacts.
// Else it is empty: what lies in the folder of the test would be gone with it.
func Artifacts(t Keeper) string {
	if asked := flag.Lookup("test.artifacts"); asked != nil && asked.Value.String() == "true" {
		return t.ArtifactDir()
	}
	return ""
}

// recordOf is what the model knows of r.
func recordOf(r lease.Record) record {
	out := record{holder: r.Holder, nonce: r.Nonce, token: r.Token}
	if r.Verdict != nil {
		out.verdict, out.survivors = r.Verdict.Token, setOf(r.Verdict.Survivors)
	}
	return out
}

// setOf and idsOf turn the survivors of a verdict, which are the indices of clients, into a set and back.
func setOf(ids []sbr.ID) (s set) {
	for _, id := range ids {
		var i int
		if _, err := fmt.Sscanf(string(id), "%d", &i); err != nil || i < 0 || i > 62 {
			i = 63 // a name that nobody has proposed
		}
		s |= 1 << i
	}
	return s
}

func idsOf(s set) (ids []sbr.ID) {
	for i := range 64 {
		if s&(1<<i) != 0 {
			ids = append(ids, sbr.ID(fmt.Sprint(i)))
		}
	}
	return ids
}

// Play makes the client do steps random operations, and look after each. One of three is in a hurry: it is
// given up after some part of haste. before is called ahead of each. A client that may hold the lease soon
// releases it, so that others get it.
func (c *Client) Play(ctx context.Context, random *rand.Rand, steps int, haste time.Duration, before func()) {
	mine := false
	for range steps {
		before()
		mine = c.play(ctx, random, haste, mine)
		c.Look()
	}
}

// play does one operation and tells whether the lease may be held now.
func (c *Client) play(ctx context.Context, random *rand.Rand, haste time.Duration, mine bool) bool {
	if random.IntN(3) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(random.Int64N(int64(haste))))
		defer cancel()
	}
	switch n := random.IntN(100); {
	case mine && n < 75, n < 5:
		_ = c.Release(ctx)
		return false
	case n < 15:
		_, _ = c.Read(ctx)
		return mine
	case n < 60:
		return c.Acquire(ctx, nil) != sbr.Held
	default:
		return c.Acquire(ctx, c.survivors(random)) != sbr.Held || mine
	}
}

// survivors proposes who goes on: those of the last verdict seen, but for one at the most. The first verdict
// lists everybody.
func (c *Client) survivors(random *rand.Rand) []sbr.ID {
	all := set(1)<<63 - 1
	if v := c.seen.Verdict; v != nil {
		all = setOf(v.Survivors)
	}
	return append([]sbr.ID{}, idsOf(all&^(1<<random.IntN(63)))...)
}
