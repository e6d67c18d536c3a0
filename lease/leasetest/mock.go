package leasetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Mock stands in for a *lock.Lock in the tests of whatever uses one by an interface of its own. (A
// *lease.Lease needs no mock: open a real one over NewMemory, and break its View.) It answers by a script, at
// once, and knows neither time nor a store: each acquire gets the next answer, whether the lock is held or
// not. It is safe for concurrent use. Make it with Open, Closed, Broken or Scripted.
type Mock struct {
	mu       sync.Mutex
	script   []error
	changed  chan struct{} // closed and replaced when the script changes
	releases error
	token    uint64
	held     bool
	works    map[*mockWork]struct{}
	attempts int
	acquired int
	released int
}

// mockWork is one Do that runs.
type mockWork struct{ cancel context.CancelCauseFunc }

// Open returns a mock that grants every acquire.
func Open() *Mock { return Scripted(nil) }

// Closed returns a mock that another owner holds.
func Closed() *Mock { return Scripted(Held("somebody else")) }

// Broken returns a mock whose acquires end in an unknown outcome; err is why. Nil: ErrInjected.
func Broken(err error) *Mock {
	if err == nil {
		err = ErrInjected
	}
	return Scripted(err)
}

// Held is an answer for Scripted: for certain not, since by holds it.
func Held(by string) error { return &lease.HeldError{Record: lease.Record{Holder: by, Token: 1}} }

// Scripted returns a mock that gives those answers, one after another; the last one repeats. It needs at
// least one. Nil is a grant, an error that wraps lease.ErrHeld (see Held) a refusal; any other error is an
// unknown outcome.
func Scripted(answers ...error) *Mock {
	m := &Mock{changed: make(chan struct{}), works: map[*mockWork]struct{}{}}
	m.Script(answers...)
	return m
}

// Script replaces the answers that are left. A caller that waits in AcquireWait or DoWait asks again.
func (m *Mock) Script(answers ...error) {
	if len(answers) == 0 {
		panic("leasetest: a script needs at least one answer")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.script = append([]error(nil), answers...)
	close(m.changed)
	m.changed = make(chan struct{})
}

// BreakRelease makes each release end in err: an unknown outcome. Nil: they work again. What is held is given
// up all the same.
func (m *Mock) BreakRelease(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.releases = err
}

// Lose takes the mock away from its holder: Held is false, and the context of each Do that runs has ended
// with reason as its cause when Lose returns. reason wraps lease.ErrLost for them; nil: just that. If nothing
// is held, nothing happens.
func (m *Mock) Lose(reason error) {
	switch {
	case reason == nil:
		reason = lease.ErrLost
	case !errors.Is(reason, lease.ErrLost):
		reason = fmt.Errorf("%w: %w", lease.ErrLost, reason)
	}
	m.end(reason)
}

// end ends the grant, and reports whether there was one.
func (m *Mock) end(reason error) (held bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	held, m.held = m.held, false
	for w := range m.works {
		w.cancel(reason)
	}
	clear(m.works)
	return held
}

// next gives the next answer. more is closed when the script is another one, ended says that this was its
// last answer. w is a work that a grant begins, nil for none.
func (m *Mock) next(ctx context.Context, w *mockWork) (more <-chan struct{}, ended bool, answer error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.attempts++
	if err := context.Cause(ctx); err != nil {
		return m.changed, true, err
	}
	answer, ended = m.script[0], len(m.script) == 1
	if !ended {
		m.script = m.script[1:]
	}
	if answer == nil {
		m.acquired++
		m.token++
		m.held = true
		if w != nil {
			m.works[w] = struct{}{}
		}
	}
	return m.changed, ended, answer
}

type ask func(context.Context, *mockWork) error

func (m *Mock) once(ctx context.Context, w *mockWork) error {
	_, _, answer := m.next(ctx, w)
	return refused(answer)
}

// wait asks until there is a grant; at the end of the script it waits for another one, or for the end of ctx.
func (m *Mock) wait(ctx context.Context, w *mockWork) error {
	for {
		more, ended, answer := m.next(ctx, w)
		if answer == nil || errors.Is(answer, lease.ErrClosed) || context.Cause(ctx) != nil {
			return refused(answer)
		}
		if ended {
			select {
			case <-more:
			case <-ctx.Done():
				return refused(fmt.Errorf("%w: %w", answer, context.Cause(ctx)))
			}
		}
	}
}

func refused(answer error) error {
	if answer == nil {
		return nil
	}
	return fmt.Errorf("could not acquire lock: %w", answer)
}

// do is Do by one of once and wait.
func (m *Mock) do(ctx context.Context, fn func(context.Context) error, by ask) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &mockWork{cancel}
	if err := by(ctx, w); err != nil {
		return err
	}
	defer func() {
		m.mu.Lock()
		_, mine := m.works[w]
		delete(m.works, w)
		last := len(m.works) == 0
		m.mu.Unlock()
		if mine && last {
			_, _ = m.Release(ctx)
		}
	}()
	err, loss := fn(ctx), context.Cause(ctx)
	switch {
	case !errors.Is(loss, lease.ErrLost), errors.Is(err, lease.ErrLost):
		return err
	case err == nil:
		return loss
	}
	return fmt.Errorf("%w; %w", err, loss)
}

// Do acquires, runs fn with a context that Lose and a release end, and releases; of several at once, the last
// one does. Its errors wrap those of the real one.
func (m *Mock) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	return m.do(ctx, fn, m.once)
}

// DoWait is Do that waits for a grant, as AcquireWait does.
func (m *Mock) DoWait(ctx context.Context, fn func(ctx context.Context) error) error {
	return m.do(ctx, fn, m.wait)
}

// Acquire gives the next answer: true, false, or the error of an unknown outcome.
func (m *Mock) Acquire(ctx context.Context) (bool, error) {
	err := m.once(ctx, nil)
	if errors.Is(err, lease.ErrHeld) {
		return false, nil
	}
	return err == nil, err
}

// AcquireFor is Acquire; the mock knows no time.
func (m *Mock) AcquireFor(ctx context.Context, _ time.Duration) (bool, error) { return m.Acquire(ctx) }

// AcquireForever is Acquire.
func (m *Mock) AcquireForever(ctx context.Context) (bool, error) { return m.Acquire(ctx) }

// TryAcquire reports whether the next answer is a grant.
func (m *Mock) TryAcquire(ctx context.Context) bool { return m.once(ctx, nil) == nil }

// AcquireWait passes over answers until there is a grant. After the last one it waits for another Script, or
// for the end of ctx.
func (m *Mock) AcquireWait(ctx context.Context) error { return m.wait(ctx, nil) }

// AcquireWaitFor is AcquireWait.
func (m *Mock) AcquireWaitFor(ctx context.Context, _ time.Duration) error { return m.AcquireWait(ctx) }

// Release gives up what is held; false without.
func (m *Mock) Release(context.Context) (bool, error) {
	m.mu.Lock()
	failure := m.releases
	if m.held && failure == nil {
		m.released++
	}
	m.mu.Unlock()
	held := m.end(lease.ErrReleased)
	if failure != nil {
		return false, fmt.Errorf("could not release lock: %w", failure)
	}
	return held, nil
}

// ForceRelease is Release.
func (m *Mock) ForceRelease(ctx context.Context) (bool, error) { return m.Release(ctx) }

// Close gives up what is held without a release.
func (m *Mock) Close() error {
	m.end(fmt.Errorf("%w: %w", lease.ErrLost, lease.ErrClosed))
	return nil
}

// Owner returns "mock".
func (*Mock) Owner() string { return "mock" }

// Token returns the token of the present grant, else zero. Each grant has the next larger one.
func (m *Mock) Token() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.held {
		return 0
	}
	return m.token
}

// Held reports whether the mock is held: acquired, and neither lost nor released since.
func (m *Mock) Held() bool { return m.Token() != 0 }

// Attempts is how many acquires were asked for, by any method. A waiting call counts again for each answer
// that is not a grant.
func (m *Mock) Attempts() int { return m.count(&m.attempts) }

// Acquired is how many acquires were granted.
func (m *Mock) Acquired() int { return m.count(&m.acquired) }

// Released is how many releases there were of what was held. Those in vain and those of unknown outcome do
// not count.
func (m *Mock) Released() int { return m.count(&m.released) }

// WasReleased reports whether what was acquired is released: at least once, and nothing is held now.
func (m *Mock) WasReleased() bool { return m.Released() > 0 && !m.Held() }

func (m *Mock) count(n *int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return *n
}
