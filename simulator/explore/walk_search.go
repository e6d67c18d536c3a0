package explore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
)

// walkFrame is a state on the way from the first one to the present one, and the steps that were tried from it.
type walkFrame struct {
	state walkState
	moves []walkMove
	next  int
}

// search visits every state that can be reached, depth first, each once.
func (w *walker) search(ctx context.Context) {
	w.frame(0).state.set(w.start())
	if !w.enter(ctx, w.stack[0]) {
		return
	}
	for w.depth = 1; w.depth > 0; {
		f := w.stack[w.depth-1]
		if f.next == len(f.moves) {
			w.depth--
			continue
		}
		if len(w.result.Broken) >= maxBroken {
			w.result.Complete = false
			return
		}
		m := f.moves[f.next]
		f.next++
		w.result.Edges++
		child := w.frame(w.depth)
		child.state.set(&f.state)
		w.do(&child.state, m)
		if w.enter(ctx, child) {
			w.depth++
		}
		if !w.result.Complete {
			return
		}
	}
}

// frame returns the frame at a depth. Frames are used again: the way goes up and down all the time.
func (w *walker) frame(depth int) *walkFrame {
	if depth == len(w.stack) {
		w.stack = append(w.stack, new(walkFrame))
	}
	return w.stack[depth]
}

// enter looks at a state that was reached, and reports whether it is new.
func (w *walker) enter(ctx context.Context, f *walkFrame) bool {
	s := &f.state
	w.buf = s.appendKey(w.buf[:0], w.n)
	sum := sha256.Sum256(w.buf)
	if !w.seen.add([2]uint64{binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])}) {
		return false
	}
	n := w.seen.len()
	if w.Limit > 0 && n > w.Limit || n%checkEvery == 0 && ctx.Err() != nil {
		w.result.Complete = false
		return false
	}
	if w.Progress != nil && n%reportEach == 0 {
		w.result.States = n
		w.Progress(w.result.WalkCounts)
	}
	f.moves, f.next = w.moves(f.moves[:0], s), 0
	if !w.quiet(s) {
		return true
	}
	if i := w.unaware(s); i >= 0 {
		f.moves = append(f.moves, walkMove{walkLooksUp, uint8(i)})
		return true
	}
	w.result.Rests++
	w.checkRest(s)
	if w.rested != nil {
		w.rested(s)
	}
	return true
}
