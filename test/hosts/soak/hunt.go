//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/ledger"
)

// soak is a run of many rounds.
type soak struct {
	options  options
	programs *programs
	report   func(result)

	mu      sync.Mutex
	todo    []plan
	results []result
	ledgers []ledger.Report // of all stages
}

// newSoak plans the rounds.
func newSoak(o options, p *programs, report func(result)) *soak {
	s := &soak{options: o, programs: p, report: report}
	for _, round := range o.numbers() {
		s.todo = append(s.todo, o.plan(round))
	}
	return s
}

// run plays all rounds, some beside each other, until they are done or ctx ends. An error is returned when
// there is no stage to play on.
func (s *soak) run(ctx context.Context) error {
	var workers tasks
	for i := range min(s.options.parallel, len(s.todo)) {
		workers.start(func() error {
			// Stores that start at once take each other's time.
			if !slept(ctx, time.Duration(i)*startApart) {
				return nil
			}
			return s.work(ctx, i+1)
		})
	}
	err := workers.wait()
	if ctx.Err() != nil {
		return nil //nolint:nilerr // whatever failed then failed because of that
	}
	return err
}

const startApart = 4 * time.Second

// take returns the next plan for a stage, one of its kind if there is one.
func (s *soak) take(k stageKind) (plan, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.todo) == 0 {
		return plan{}, false
	}
	i := max(slices.IndexFunc(s.todo, func(p plan) bool { return p.kind() == k }), 0)
	p := s.todo[i]
	s.todo = slices.Delete(s.todo, i, i+1)
	return p, true
}

// work plays rounds on one stage after the other: a new one for another mode, and after a round that failed.
func (s *soak) work(ctx context.Context, number int) (err error) {
	var st *stage
	stages := 0
	leave := func(keep bool) error {
		if st == nil {
			return nil
		}
		dir := st.lab.Dir()
		s.settle(st)
		err := st.close()
		if st = nil; err == nil && !keep && !s.options.keep {
			err = os.RemoveAll(dir)
		}
		return err
	}
	failed := false
	defer func() {
		if leaveErr := leave(failed); err == nil {
			err = leaveErr
		}
	}()
	for {
		k := s.options.first(number)
		if st != nil {
			k = st.kind
		}
		p, ok := s.take(k)
		if !ok || ctx.Err() != nil {
			return nil
		}
		if st != nil && (failed || st.kind != p.kind()) {
			if err := leave(failed); err != nil {
				return err
			}
			failed = false
		}
		if st == nil {
			stages++
			if st, err = s.open(ctx, p.kind(), fmt.Sprintf("worker-%d-stage-%d", number, stages)); err != nil {
				return err
			}
		}
		r := st.play(ctx, &p)
		failed = r.failed()
		if failed {
			st.note(&r)
		}
		s.add(r)
	}
}

// open builds a stage and waits until its cluster is whole.
func (s *soak) open(ctx context.Context, k stageKind, name string) (*stage, error) {
	st, err := newStage(ctx, s.programs, s.options.store, k, filepath.Join(s.options.logs, name))
	if err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	if err := st.cluster.WaitWhole(within); err != nil {
		_ = st.close()
		return nil, fmt.Errorf("a new cluster (%s) is not whole after %v: %w; its logs are in %s", k, startWithin,
			err, filepath.Join(s.options.logs, name))
	}
	if s.options.family == recordFamily {
		if err := st.warmUp(ctx); err != nil {
			return nil, errors.Join(err, st.close())
		}
	}
	return st, nil
}

func (s *soak) add(r result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !r.CutShort {
		s.results = append(s.results, r)
	}
	s.report(r)
}

// note leaves beside the logs of a failed round what is needed to read them.
func (s *stage) note(r *result) {
	raw, err := json.MarshalIndent(struct {
		Result  *result   `json:"result"`
		Chain   any       `json:"chain"`
		Trouble []stretch `json:"trouble"`
	}{r, s.cluster.Chain().Entries(), s.troubles()}, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(s.lab.Dir(), fmt.Sprintf("round-%d.json", r.Plan.Round)), raw, 0o644)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "soak: %v\n", err)
	}
}
