//go:build linux

package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
)

const (
	sampleEvery = 500 * time.Millisecond
	// forgetWithin is how long members may go on to list a member that is down: they find out, or are told.
	forgetWithin = 45 * time.Second
)

// sample is what one agent said of itself at one time.
type sample struct {
	asked       time.Time
	member      string
	incarnation string
	state       sbr.State
	up          []string // incarnations that it takes for reachable members that are up
}

// sampler asks all agents all the time.
type sampler struct {
	stop context.CancelFunc
	done sync.WaitGroup

	mu      sync.Mutex
	samples []sample
}

func (c *Cluster) startSampler() *sampler {
	ctx, cancel := context.WithCancel(context.Background())
	w := &sampler{stop: cancel}
	w.done.Go(func() {
		ticker := time.NewTicker(sampleEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			var round sync.WaitGroup
			for _, m := range c.Members() {
				round.Go(func() { w.ask(ctx, m) })
			}
			round.Wait()
		}
	})
	return w
}

func (w *sampler) ask(ctx context.Context, m *Member) {
	asked := time.Now()
	s, err := m.Status(ctx)
	if err != nil || s.Incarnation == "" {
		return // it has ended, is paused, or starts
	}
	x := sample{asked: asked, member: m.Host.Name(), incarnation: s.Incarnation, state: s.State, up: upIn(&s)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.samples = append(w.samples, x)
}

func upIn(s *downing.Status) (up []string) {
	for _, m := range s.Members {
		if m.Reachable && m.Status == sbr.Up.String() {
			up = append(up, m.Incarnation)
		}
	}
	return up
}

func (w *sampler) end() {
	w.stop()
	w.done.Wait()
}

func (w *sampler) all() []sample {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]sample(nil), w.samples...)
}

// returned looks for downed incarnations that work again, or are taken for members that do. downs says when
// each went down.
func returned(samples []sample, downs map[string]time.Time) error {
	for _, s := range samples {
		if at, down := downs[s.incarnation]; down && s.asked.After(at) && s.state != sbr.StateDown {
			return fmt.Errorf("%s was down at %s and is %s at %s", s.incarnation, clock(at), s.state, clock(s.asked))
		}
		for _, id := range s.up {
			if at, down := downs[id]; down && s.asked.After(at.Add(forgetWithin)) {
				return fmt.Errorf("%s was down at %s and %s takes it for a member that is up at %s", id, clock(at),
					s.member, clock(s.asked))
			}
		}
	}
	return nil
}

func clock(t time.Time) string { return t.Format("15:04:05.000") }
