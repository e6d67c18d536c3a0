package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/serf-sbr/serf-sbr/simulator"
	"github.com/serf-sbr/serf-sbr/simulator/explore"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// explore plays the seeds on all cores until they are played, the time is over, or ctx is done: then it was interrupted.
func (o *exploreRandom) explore(ctx context.Context, s streams) (found *explore.Findings, interrupted bool) {
	limited := ctx
	if o.budget > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, o.budget)
		defer cancel()
	}
	show := newExploreProgress(s.err, o.seeds.count(), o.budget)
	parts := make([]*explore.Findings, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i := range parts {
		wg.Go(func() {
			parts[i] = explore.Random(limited, explore.RandomOptions{
				From: o.seeds.from + uint64(i), To: o.seeds.to, Step: uint64(len(parts)), Generate: simulator.Random, Ran: show.watcher(),
			})
		})
	}
	wg.Wait()
	show.end()
	found = explore.Join(parts...)
	return found, !found.Complete && ctx.Err() != nil
}

// Shrinking is bounded: what it is about is known already.
const (
	shrinkTries = 1500
	shrinkKinds = 20
)

// shrink makes the scenario of each failure small, on all cores, and writes it and the original to the folder of --out. Of many
// failures it does that with the first ones.
func (o *exploreRandom) shrink(ctx context.Context, r *explore.Report) error {
	errs := make([]error, len(r.Failures))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	taken := make(map[string]int)
	var wg sync.WaitGroup
	for i, f := range r.Failures {
		name := fmt.Sprintf("%s-seed-%d", f.Promise, f.Seed)
		if taken[name]++; taken[name] > 1 { // the same seed breaks one promise in two ways
			name = fmt.Sprintf("%s-%d", name, taken[name])
		}
		tries := shrinkTries
		if i >= shrinkKinds {
			tries = 1
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = o.shrinkOne(ctx, f, name, tries)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (o *exploreRandom) shrinkOne(ctx context.Context, f *explore.Failure, name string, tries int) error {
	f.Replay = fmt.Sprintf("sbr explore random --seeds %d", f.Seed)
	if f.Scenario != "" { // it is not that of its seed
		f.Replay = fmt.Sprintf("sbr simulate - --seeds %d", f.Seed)
	}
	original, err := f.Shrink(ctx, simulator.Random, tries)
	if err != nil || o.out == "" {
		return err
	}
	small := filepath.Join(o.out, name+".yaml")
	f.Replay = (&played{file: &scenarioFile{path: small}, Result: scenario.Result{Seed: f.Seed}}).replay()
	if err := os.WriteFile(small, []byte(f.Scenario), 0o666); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.out, name+"-original.yaml"), []byte(original), 0o666)
}
