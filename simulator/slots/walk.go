package slots

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/singleton/handover"
)

const (
	maxBroken  = 3
	checkEvery = 1 << 10 // states between two looks at the context
	reportEach = 1 << 15 // states between two reports of progress
)

type key [2]uint64

// walker is a search under way.
type walker struct {
	Options
	notice   time.Duration // how long it may take to notice something
	seen     map[key]struct{}
	settled  map[key]time.Duration
	stack    []*frame
	depth    int
	buf      []byte
	sizes    Counts
	starts   int
	settling int
	report   Report
	tell     func(i int, e handover.Effect)
}

// frame is a state on the way from the first one to the present one, and the moves that were tried from it.
type frame struct {
	state state
	moves []move
	next  int
}

// Walk searches all states. It looks at ctx now and then, and returns what it has when that is cancelled. The error is that of Options.Validate.
func Walk(ctx context.Context, o Options) (Report, error) {
	if err := o.Validate(); err != nil {
		return Report{}, err
	}
	w := &walker{Options: o, notice: o.Handover.Margin / 2, seen: map[key]struct{}{}, settled: map[key]time.Duration{}}
	w.report = Report{Name: o.Name, Complete: true}
	w.search(ctx)
	w.report.Counts = w.counted()
	return w.report, nil
}

// Walks makes several walks, at most workers of them at a time, and returns their reports in order.
func Walks(ctx context.Context, all []Options, workers int) ([]Report, error) {
	reports, errs := make([]Report, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	next := make(chan int)
	for range max(workers, 1) {
		wg.Go(func() {
			for k := range next {
				reports[k], errs[k] = Walk(ctx, all[k])
			}
		})
	}
	for k := range all {
		next <- k
	}
	close(next)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return reports, nil
}

func (w *walker) counted() Counts {
	c := w.sizes
	c.States, c.Starts = len(w.seen), w.starts
	return c
}

// first is the state in which the members that are there from the beginning know each other, and are not armed yet.
func (w *walker) first() (s state) {
	s.holder = -1
	s.changed, s.decided = -w.StableAfter, -w.StableAfter
	there := w.Members - w.Joins
	for i := range w.Members {
		cfg := w.Handover
		cfg.Self, cfg.Born, cfg.UseLease = name(i), w.born(i), w.UseLease
		m, err := handover.New(cfg, 0)
		if err != nil {
			panic(err) // Validate has looked at it
		}
		s.members[i] = member{m: m, sure: -w.Handover.Trust}
		if i < there {
			s.members[i].up, s.members[i].joined, s.members[i].knows = true, true, one(there)-1
		}
	}
	w.lookAll(&s)
	for w.Formed {
		mv, more := w.fair(&s)
		if !more {
			break
		}
		w.do(&s, mv)
	}
	s.cuts, s.crashes, s.pauses, s.resigns, s.leaves = int8(w.Cuts), int8(w.Crashes), int8(w.Pauses), int8(w.Resigns), int8(w.Leaves)
	s.ends, s.late, s.twice, s.removals, s.slow = int8(w.Ends), int8(w.Late), int8(w.Twice), int8(w.Removals), int8(w.Slow)
	s.losses, s.doubts = int8(w.Losses), int8(w.Doubts)
	return s
}

// born is a member's birth.
func (w *walker) born(i int) int64 {
	if w.Skewed && i >= w.Members-w.Joins {
		return int64(1 + i)
	}
	return int64(100 + i)
}

func (w *walker) keyOf(s *state) key {
	w.buf = w.appendKey(w.buf[:0], s)
	sum := sha256.Sum256(w.buf)
	return key{binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])}
}

// search visits every state that can be reached, depth first, each once.
func (w *walker) search(ctx context.Context) {
	w.frame(0).state = w.first()
	w.enter(ctx, w.stack[0])
	for w.depth = 1; w.depth > 0 && w.report.Complete; {
		f := w.stack[w.depth-1]
		if f.next == len(f.moves) {
			w.depth--
			continue
		}
		mv := f.moves[f.next]
		f.next++
		w.sizes.Edges++
		child := w.frame(w.depth)
		child.state = f.state
		found := len(w.report.Broken)
		w.do(&child.state, mv)
		if len(w.report.Broken) == found && w.enter(ctx, child) {
			w.depth++
		}
		w.report.Complete = w.report.Complete && len(w.report.Broken) < maxBroken
	}
}

// frame returns the frame at a depth. Frames are used again: the way goes up and down all the time.
func (w *walker) frame(depth int) *frame {
	if depth == len(w.stack) {
		w.stack = append(w.stack, new(frame))
	}
	return w.stack[depth]
}

// enter looks at a state that was reached, and reports whether it is new.
func (w *walker) enter(ctx context.Context, f *frame) bool {
	k := w.keyOf(&f.state)
	if _, ok := w.seen[k]; ok {
		return false
	}
	w.seen[k] = struct{}{}
	n := len(w.seen)
	if w.Limit > 0 && n > w.Limit || n%checkEvery == 0 && ctx.Err() != nil {
		w.report.Complete = false
		return false
	}
	if w.Progress != nil && n%reportEach == 0 {
		w.Progress(w.counted())
	}
	f.moves, f.next = w.moves(f.moves[:0], &f.state), 0
	if n := len(f.moves); n == 0 || f.moves[n-1].kind == waits {
		w.depth++ // so that the way to it can be told
		w.settle(&f.state)
		w.depth--
	}
	return true
}
