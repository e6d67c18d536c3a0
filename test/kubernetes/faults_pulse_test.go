package kubernetes_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// pulse tells when the API server and its store were slow for everybody. What a cell shows then is not its fault's doing.
type pulse struct {
	mu      sync.Mutex
	last    time.Time // the end of the last stall
	waiting time.Time // since when there is no answer; zero between two reads
}

// takePulse reads all the time, past all proxies, until the test ends.
func takePulse(t *testing.T, cluster *kubetest.Cluster) *pulse {
	s := openKubeconfig(t, cluster.AdminKubeconfig(), cluster.Namespace(t))
	p := &pulse{}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { p.run(ctx, s) })
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	return p
}

func (p *pulse) run(ctx context.Context, s *kubernetes.Store) {
	for ctx.Err() == nil {
		p.beat(func() error {
			_, err := s.Read(ctx)
			return err
		})
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (p *pulse) beat(read func() error) {
	began := time.Now()
	p.note(func() { p.waiting = began })
	err := read()
	p.note(func() {
		p.waiting = time.Time{}
		if err != nil || isStall(began) {
			p.last = time.Now()
		}
	})
}

func (p *pulse) note(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func isStall(began time.Time) bool { return time.Since(began) > faultRequestTimeout/4 }

func (p *pulse) stalledSince(begin time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last.After(begin) || !p.waiting.IsZero() && isStall(p.waiting)
}
