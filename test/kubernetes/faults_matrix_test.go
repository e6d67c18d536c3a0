package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/serf-sbr/serf-sbr/test/faults"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// cellsAtOnce is how many run side by side: they mostly wait.
const cellsAtOnce = 24

// TestFaultMatrix strikes each kind of request with each fault, between a lease and a real API server, and compares the outcome
// and the object with the table. Whatever happens, two never hold the lease (S3), and nobody believes to hold it who does not (S4).
// To look at some cells only: go test -C test ./kubernetes -run TestFaultMatrix -v -faults "half a body"
func TestFaultMatrix(t *testing.T) {
	shared, own := kubetest.Shared(t), kubetest.New(t)
	killed := newDisaster(
		func() error { own.KillAPIServer(); return nil },
		func() error { return own.StartAPIServer(t.Context()) })
	stalled := newDisaster(own.PauseEtcd, func() error {
		if !own.EtcdIsPaused() {
			return errors.New("etcd was stopped and runs: somebody else has continued it")
		}
		if err := own.ContinueEtcd(); err != nil {
			return err
		}
		return own.WaitReady(t.Context())
	})
	m := matrix{ctx: t.Context(), slots: make(chan struct{}, cellsAtOnce), pulse: takePulse(t, shared)}
	for _, r := range faultTable() {
		m.start(r, shared)
	}
	for _, r := range disasters(killed, stalled) {
		m.startDisaster(r, own)
	}
	for _, run := range m.runs {
		t.Run(run.name, run.check)
	}
	require.NotEmpty(t, m.runs, "no cell's name contains %q", *faults.Only)
	if m.last != nil {
		<-m.last
	}
	require.NoError(t, errors.Join(killed.err, stalled.err))
}

// takePulse reads past all proxies.
func takePulse(t *testing.T, cluster *kubetest.Cluster) *faults.Pulse {
	s := openKubeconfig(t, cluster.AdminKubeconfig(), cluster.Namespace(t))
	return faults.TakePulse(t, faultRequestTimeout/4, func(ctx context.Context) error {
		_, err := s.Read(ctx)
		return err
	})
}

// matrix runs the cells.
type matrix struct {
	ctx   context.Context
	slots chan struct{}
	pulse *faults.Pulse
	runs  []*cellRun
	last  chan struct{} // closed when the disaster before is over
}

// cellRun is one cell on its way.
type cellRun struct {
	name    string
	allowed []string
	make    func() *cell
	cell    *cell
	tries   int
	earlier []string // broken promises of tries that were spoiled
	done    chan struct{}
	took    time.Duration
}

func (m *matrix) add(r row, i int, cluster *kubetest.Cluster) *cellRun {
	name := fmt.Sprintf("%s, %s/%s", r.fault.name, r.fault.lasts, steps[i].name)
	if !strings.Contains(name, *faults.Only) {
		return nil
	}
	one := &cellRun{name: name, allowed: r.allowed(i), done: make(chan struct{})}
	one.make = func() *cell {
		return &cell{T: &faults.T{}, cluster: cluster, fault: r.fault, step: &steps[i], log: new(logtest.Log)}
	}
	m.runs = append(m.runs, one)
	return one
}

func (m *matrix) start(r row, cluster *kubetest.Cluster) {
	for i := range steps {
		if one := m.add(r, i, cluster); one != nil {
			go func() {
				m.slots <- struct{}{}
				defer func() { <-m.slots }()
				one.do(m.ctx, m.pulse)
			}()
		}
	}
}

// startDisaster runs all steps side by side, when the disaster before is over.
func (m *matrix) startDisaster(r row, cluster *kubetest.Cluster) {
	if !strings.Contains(r.fault.name, *faults.Only) {
		return
	}
	before, done := m.last, make(chan struct{})
	m.last = done
	var cells []*cellRun
	for i := range steps {
		cells = append(cells, m.add(r, i, cluster))
	}
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		for _, one := range cells {
			go one.do(m.ctx, m.pulse)
		}
		r.fault.disaster.run(m.ctx)
		for _, one := range cells {
			<-one.done
		}
	}()
}

// do runs the cell. If it goes wrong, and the machine was too slow for it meanwhile, it has another try; but nothing excuses a
// broken promise.
func (r *cellRun) do(ctx context.Context, p *faults.Pulse) {
	defer close(r.done)
	began := time.Now()
	for range 4 {
		r.cell = r.make()
		r.tries++
		from := time.Now()
		r.cell.do(ctx)
		if r.asExpected() || !r.cell.spoiled.Load() && !p.StalledSince(from) {
			break
		}
		r.earlier = append(r.earlier, r.cell.BrokenPromises()...)
	}
	r.took = time.Since(began)
}

func (r *cellRun) asExpected() bool {
	return len(r.cell.Problems()) == 0 && slices.Contains(r.allowed, r.cell.got.String())
}

// do runs the cell on a goroutine of its own, which its failure ends.
func (c *cell) do(ctx context.Context) {
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		if c.fault.disaster != nil {
			defer c.fault.disaster.leave(c)
		}
		defer c.Finish()
		var cancel context.CancelFunc
		c.ctx, cancel = context.WithTimeout(ctx, cellTimeout)
		c.Cleanup(cancel)
		c.build()
		c.step.run(c)
	}()
	<-finished
}

func (r *cellRun) check(t *testing.T) {
	<-r.done
	c := r.cell
	t.Logf("%s, after %s and %d tries", c.got, r.took.Round(time.Millisecond), r.tries)
	if problems := append(r.earlier, c.Problems()...); len(problems) > 0 {
		t.Errorf("%s\n%s", strings.Join(problems, "\n"), c.log)
	}
	if !slices.Contains(r.allowed, c.got.String()) {
		t.Errorf("the table allows %q, the cell is %q\n%s", r.allowed, c.got, c.log)
	}
}
