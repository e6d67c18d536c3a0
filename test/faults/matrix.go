package faults

import (
	"context"
	"flag"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/lease"
)

// Only is the flag -faults of the matrices.
var Only = flag.String("faults", "", "run only the cells of the fault matrix whose name contains this")

// cellsAtOnce is how many run side by side in each round: they mostly wait. A cell that goes wrong while the
// machine is too slow has another try in the next round, beside fewer of its kind.
var cellsAtOnce = []int{24, 6, 2, 1}

// Target is a store on a real server.
type Target struct {
	// Name is that of the store in the table.
	Name string
	// Address is where the server listens.
	Address string
	// Open returns a store of the record of that name on the server at that address, which ends with the
	// cell. A's store goes through a proxy, and may be another user's than the others.
	Open func(t *T, address, name string) lease.Store
	// Delete removes that record past all leases.
	Delete func(ctx context.Context, name string) error
	// Rows are faults of this store alone, beside those of Table.
	Rows []Row
	// Polls: the store has no stream of changes.
	Polls bool
	// Wholes are the faults of the server itself, by name: those of Whole.
	Wholes map[string]Whole
}

// Whole is a fault of the server itself, which strikes all cells of its row at once.
type Whole struct{ Begin, End func() error }

// Matrix strikes each kind of request with each fault, and compares the outcome and the record with Table.
// To look at some cells only: -run Matrix -v -faults "half an answer".
func Matrix(t *testing.T, target *Target) {
	t.Helper()
	for name := range target.Wholes {
		require.True(t, slices.ContainsFunc(Table, func(r Row) bool { return r.whole && r.Name == name }),
			"the table has no %q", name)
	}
	direct := &T{}
	t.Cleanup(direct.Finish)
	store := target.Open(direct, target.Address, "pulse")
	m := &matrix{target: target, pulse: TakePulse(t, 200*time.Millisecond, func(ctx context.Context) error {
		_, err := store.Read(ctx)
		return err
	})}
	rows := slices.DeleteFunc(slices.Concat(Table, target.Rows), func(r Row) bool {
		return !strings.Contains(r.On, target.Name)
	})
	for i := range rows {
		if r := &rows[i]; !r.whole {
			for _, step := range steps {
				m.add(r, step, nil)
			}
		}
	}
	left := m.runs
	for _, atOnce := range cellsAtOnce {
		left = m.round(t.Context(), left, atOnce)
	}
	for i := range rows { // one after the other, when no other cell runs
		if whole, has := target.Wholes[rows[i].Name]; has {
			m.strike(t, &rows[i], whole)
		}
	}
	require.NotEmpty(t, m.runs, "no cell's name contains %q", *Only)
	for _, run := range m.runs {
		t.Run(run.name, run.check)
	}
}

type matrix struct {
	target *Target
	pulse  *Pulse
	runs   []*cellRun
}

// round runs cells, some at once, and returns those that have to run again.
func (m *matrix) round(ctx context.Context, runs []*cellRun, atOnce int) (again []*cellRun) {
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		slots = make(chan struct{}, atOnce)
	)
	for _, run := range runs {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if !run.do(ctx, m.pulse) {
				mu.Lock()
				defer mu.Unlock()
				again = append(again, run)
			}
		})
	}
	all.Wait()
	return again
}

func (m *matrix) add(r *Row, step string, whole *event) *cellRun {
	name := r.Name + "/" + step
	if !strings.Contains(name, *Only) {
		return nil
	}
	one := &cellRun{name: name, allowed: r.allowed(step), make: func() *cell {
		return &cell{T: &T{}, target: m.target, row: r, step: step, whole: whole, log: new(logtest.Log)}
	}}
	m.runs = append(m.runs, one)
	return one
}

// strike runs all steps side by side, and the fault of the server when each has set its scene.
func (m *matrix) strike(t *testing.T, r *Row, whole Whole) {
	if !strings.Contains(r.Name, *Only) {
		return
	}
	e := newEvent()
	var all sync.WaitGroup
	for _, step := range steps {
		run := m.add(r, step, e)
		all.Go(func() { run.do(t.Context(), nil) })
	}
	for _, phase := range []struct {
		gate *Gate
		do   func() error
		done chan struct{}
	}{{e.ready, whole.Begin, e.happened}, {e.outcomes, whole.End, e.over}} {
		select {
		case <-phase.gate.Open:
		case <-t.Context().Done():
		}
		require.NoError(t, phase.do(), r.Name)
		close(phase.done)
	}
	all.Wait()
}

// cellRun is one cell on its way.
type cellRun struct {
	name    string
	allowed []string
	make    func() *cell
	cell    *cell
	tries   int
	earlier []string // broken promises of tries on a slow machine
	took    time.Duration
}

// do runs the cell. It is not done if it goes wrong, and the machine was too slow for it meanwhile; but nothing
// excuses a broken promise.
func (r *cellRun) do(ctx context.Context, p *Pulse) (done bool) {
	if r.cell != nil {
		r.earlier = append(r.earlier, r.cell.BrokenPromises()...)
	}
	r.cell = r.make()
	r.tries++
	began := time.Now()
	r.cell.do(ctx)
	r.took += time.Since(began)
	return r.asExpected() || p == nil || !p.StalledSince(began)
}

func (r *cellRun) asExpected() bool {
	return len(r.cell.Problems()) == 0 && slices.Contains(r.allowed, r.cell.got)
}

func (r *cellRun) check(t *testing.T) {
	c := r.cell
	t.Logf("%s, after %s and %d tries", c.got, r.took.Round(time.Millisecond), r.tries)
	if problems := append(r.earlier, c.Problems()...); len(problems) > 0 {
		t.Errorf("%s\n%s", strings.Join(problems, "\n"), c.log)
	}
	if !slices.Contains(r.allowed, c.got) {
		t.Errorf("the table allows %q, the cell is %q\n%s", r.allowed, c.got, c.log)
	}
}

// event is a fault of the whole server: it happens when all cells of its row are ready, and is over when each
// has an outcome.
type event struct {
	ready, outcomes *Gate
	happened, over  chan struct{}
}

func newEvent() *event {
	return &event{ready: NewGate(), outcomes: NewGate(), happened: make(chan struct{}),
		over: make(chan struct{})}
}

// leave is for a cell that is over: nobody waits for a cell that has failed.
func (e *event) leave(step string) {
	e.ready.Arrive(step)
	e.outcomes.Arrive(step)
}

// Gate opens when every step has arrived.
type Gate struct {
	// Open is closed then.
	Open chan struct{}

	mu   sync.Mutex
	seen map[string]bool
}

// NewGate returns a gate that is shut.
func NewGate() *Gate { return &Gate{Open: make(chan struct{}), seen: map[string]bool{}} }

// Arrive may be called any number of times.
func (g *Gate) Arrive(step string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.seen[step] {
		return
	}
	g.seen[step] = true
	if len(g.seen) == len(steps) {
		close(g.Open)
	}
}
