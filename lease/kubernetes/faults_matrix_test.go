package kubernetes_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/kubetest"
)

var (
	updateFaults = flag.Bool("update", false, "write docs/lease-faults.md anew, if every cell is as expected")
	onlyFaults   = flag.String("faults", "", "run only the cells of the fault matrix whose name contains this")
)

const (
	faultsPath = "../../docs/lease-faults.md"
	// cellsAtOnce is how many run side by side: they mostly wait.
	cellsAtOnce = 24
)

// TestFaultMatrix strikes each kind of request with each fault, between a lease and a real API server, and compares the outcome
// and the object with the table. Whatever happens, two never hold the lease (S3), and nobody believes to hold it who does not (S4).
// After a change: go test ./lease/kubernetes -run TestFault -update, and read the difference.
func TestFaultMatrix(t *testing.T) {
	shared, own := kubetest.Shared(t), kubetest.New(t)
	killed := newDisaster(
		func() error { own.KillAPIServer(); return nil },
		func() error { return own.StartAPIServer(t.Context()) })
	stalled := newDisaster(own.PauseEtcd, func() error {
		if err := own.ContinueEtcd(); err != nil {
			return err
		}
		return own.WaitReady(t.Context())
	})
	m := matrix{ctx: t.Context(), slots: make(chan struct{}, cellsAtOnce)}
	for _, r := range faultTable() {
		m.start(r, shared)
	}
	for _, r := range disasters(killed, stalled) {
		m.startDisaster(r, own)
	}
	for _, run := range m.runs {
		t.Run(run.name, run.check)
	}
	require.NotEmpty(t, m.runs, "no cell's name contains %q", *onlyFaults)
	if *updateFaults && !t.Failed() && *onlyFaults == "" {
		require.NoError(t, os.WriteFile(faultsPath, []byte(renderFaults()), 0o644))
	}
}

// TestFaultPage compares the page in docs with the table that TestFaultMatrix checks.
func TestFaultPage(t *testing.T) {
	page, err := os.ReadFile(faultsPath)
	require.NoError(t, err)
	require.Equal(t, string(page), renderFaults(),
		"docs/lease-faults.md is not what the matrix expects: go test ./lease/kubernetes -run TestFault -update")
}

// matrix runs the cells.
type matrix struct {
	ctx   context.Context
	slots chan struct{}
	runs  []*cellRun
	last  chan struct{} // closed when the disaster before is over
}

// cellRun is one cell on its way.
type cellRun struct {
	name    string
	allowed []string
	cell    *cell
	done    chan struct{}
	took    time.Duration
}

func (m *matrix) add(r row, i int, cluster *kubetest.Cluster) *cellRun {
	name := fmt.Sprintf("%s, %s/%s", r.fault.name, r.fault.lasts, steps[i].name)
	if !strings.Contains(name, *onlyFaults) {
		return nil
	}
	c := &cell{cellT: &cellT{}, cluster: cluster, fault: r.fault, step: &steps[i], log: &logText{}}
	one := &cellRun{name: name, allowed: r.allowed(i), cell: c, done: make(chan struct{})}
	m.runs = append(m.runs, one)
	return one
}

func (m *matrix) start(r row, cluster *kubetest.Cluster) {
	for i := range steps {
		if one := m.add(r, i, cluster); one != nil {
			go func() {
				m.slots <- struct{}{}
				defer func() { <-m.slots }()
				one.do(m.ctx)
			}()
		}
	}
}

// startDisaster runs all steps side by side, when the disaster before is over.
func (m *matrix) startDisaster(r row, cluster *kubetest.Cluster) {
	if !strings.Contains(r.fault.name, *onlyFaults) {
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
			go one.do(m.ctx)
		}
		if err := r.fault.disaster.run(m.ctx); err != nil {
			cells[0].cell.Errorf("%s: %v", r.fault.name, err)
		}
		for _, one := range cells {
			<-one.done
		}
	}()
}

// do runs the cell on a goroutine of its own, which its failure ends.
func (r *cellRun) do(ctx context.Context) {
	began := time.Now()
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		defer r.cell.finish()
		var cancel context.CancelFunc
		r.cell.ctx, cancel = context.WithTimeout(ctx, cellTimeout)
		r.cell.cleanup(cancel)
		r.cell.build()
		r.cell.step.run(r.cell)
	}()
	<-finished
	r.took = time.Since(began)
	close(r.done)
}

func (r *cellRun) check(t *testing.T) {
	<-r.done
	c := r.cell
	t.Logf("%s, after %s", c.got, r.took.Round(time.Millisecond))
	if len(c.problems) > 0 {
		t.Errorf("%s\n%s", strings.Join(c.problems, "\n"), c.log)
	}
	if !slices.Contains(r.allowed, c.got.String()) {
		t.Errorf("the table allows %q, the cell is %q\n%s", r.allowed, c.got, c.log)
	}
}
