package leasetest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Mock stands in for a *lease.Lease in the tests of whatever uses one by an interface of its own; Lock makes the same of a
// *lock.Lock. It answers by a script, at once, and knows neither time nor a store: each acquire gets the next answer, whether the
// lease is held or not. It is safe for concurrent use. Make it with Open, Closed, Broken or Scripted.
type Mock struct{ *mock }

// Open returns a mock that grants every acquire.
func Open() *Mock { return Scripted(Granted()) }

// Closed returns a mock that somebody else holds.
func Closed() *Mock { return Scripted(Held("somebody else")) }

// Broken returns a mock of which nobody knows whether it was acquired; err is why. Nil: ErrInjected.
func Broken(err error) *Mock { return Scripted(Unknown(err)) }

// Scripted returns a mock that answers with those outcomes, one after another; the last one repeats. It needs at least one.
func Scripted(outcomes ...lease.Outcome) *Mock {
	m := &mock{changed: make(chan struct{})}
	m.Script(outcomes...)
	return &Mock{m}
}

// Granted is an outcome for Scripted. The mock numbers the tokens itself.
func Granted() lease.Outcome { return lease.Outcome{Kind: lease.Granted} }

// Held is an outcome for Scripted: for certain not, since by holds it.
func Held(by string) lease.Outcome {
	return lease.Outcome{Kind: lease.Held, Record: lease.Record{Holder: by, Token: 1}}
}

// Unknown is an outcome for Scripted: nobody knows; err is why. Nil: ErrInjected.
func Unknown(err error) lease.Outcome {
	if err == nil {
		err = ErrInjected
	}
	return lease.Outcome{Kind: lease.Unknown, Err: err}
}

// Lock returns the same mock with the methods of a *lock.Lock.
func (m *Mock) Lock() *LockMock { return &LockMock{m.mock} }

// mock is what Mock and LockMock have in common.
type mock struct {
	mu       sync.Mutex
	script   []lease.Outcome
	changed  chan struct{} // closed and replaced when the script changes
	releases error
	token    uint64
	held     bool
	lost     func(error)
	works    map[*mockWork]struct{}
	attempts int
	acquired int
	released int
}

// mockWork is one Do that runs.
type mockWork struct{ cancel context.CancelCauseFunc }

const mockOwner = "mock"

// Script replaces the answers that are left. Whoever waits in AcquireWait or DoWait asks again.
func (m *mock) Script(outcomes ...lease.Outcome) {
	if len(outcomes) == 0 {
		panic("leasetest: a script needs at least one outcome")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.script = append([]lease.Outcome(nil), outcomes...)
	close(m.changed)
	m.changed = make(chan struct{})
}

// BreakRelease makes each release end as unknown, because of err. Nil: they work again. What is held is given up all the same.
func (m *mock) BreakRelease(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.releases = err
}

// Lose takes the mock away from its holder: Check and Held are false, the context of each Do that runs is cancelled, and the lost
// callback has been called, once, when Lose returns. reason wraps lease.ErrLost for them; nil: just that. If nothing is held,
// nothing happens.
func (m *mock) Lose(reason error) {
	switch {
	case reason == nil:
		reason = lease.ErrLost
	case !errors.Is(reason, lease.ErrLost):
		reason = fmt.Errorf("%w: %w", lease.ErrLost, reason)
	}
	if lost := m.end(reason); lost != nil {
		lost(reason)
	}
}

// end ends the grant and returns its lost callback.
func (m *mock) end(reason error) (lost func(error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held {
		lost = m.lost
	}
	m.held, m.lost = false, nil
	for w := range m.works {
		w.cancel(reason)
	}
	m.works = nil
	return lost
}

// next gives the next answer. more is closed when the script is another one, ended says that this was its last answer.
func (m *mock) next(ctx context.Context, lost func(error), w *mockWork) (out lease.Outcome, more <-chan struct{}, ended bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.attempts++
	more = m.changed
	if err := context.Cause(ctx); err != nil {
		return lease.Outcome{Kind: lease.Unknown, Err: err}, more, true
	}
	out, ended = m.script[0], len(m.script) == 1
	if !ended {
		m.script = m.script[1:]
	}
	switch {
	case out.Kind == lease.Granted:
		m.acquired++
		m.token++
		m.held = true
		if lost != nil {
			m.lost = lost
		}
		if w != nil {
			if m.works == nil {
				m.works = map[*mockWork]struct{}{}
			}
			m.works[w] = struct{}{}
		}
		out.Record.Holder, out.Record.Token, out.Record.Verdict = mockOwner, m.token, out.Record.Verdict.Clone()
	case out.Kind == lease.Unknown && out.Err == nil:
		out.Err = ErrInjected
	}
	return out, more, ended
}

func (m *mock) once(ctx context.Context, lost func(error), w *mockWork) lease.Outcome {
	out, _, _ := m.next(ctx, lost, w)
	return out
}

// wait asks until there is a grant; at the end of the script it waits for another one, or for the end of ctx.
func (m *mock) wait(ctx context.Context, lost func(error), w *mockWork) lease.Outcome {
	for {
		out, more, ended := m.next(ctx, lost, w)
		if out.Kind == lease.Granted || out.Superseded || errors.Is(out.Err, lease.ErrClosed) || context.Cause(ctx) != nil {
			return out
		}
		if ended {
			select {
			case <-more:
			case <-ctx.Done():
				out.Err = context.Cause(ctx)
				return out
			}
		}
	}
}

func (m *mock) release() lease.ReleaseOutcome {
	m.mu.Lock()
	failure, held := m.releases, m.held
	if held && failure == nil {
		m.released++
	}
	m.mu.Unlock()
	m.end(fmt.Errorf("%w: released while the work ran", lease.ErrLost))
	switch {
	case failure != nil:
		return lease.ReleaseOutcome{Kind: lease.ReleaseUnknown, Err: failure}
	case held:
		return lease.ReleaseOutcome{Kind: lease.Released}
	default:
		return lease.ReleaseOutcome{Kind: lease.NotReleased}
	}
}

type ask func(context.Context, func(error), *mockWork) lease.Outcome

// do is Do by one of once and wait.
func (m *mock) do(ctx context.Context, fn func(context.Context) error, by ask) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &mockWork{cancel}
	if err := refusal(by(ctx, nil, w)); err != nil {
		return err
	}
	defer func() {
		m.mu.Lock()
		_, mine := m.works[w]
		delete(m.works, w)
		last := len(m.works) == 0
		m.mu.Unlock()
		if mine && last {
			m.release()
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

// refusal is the error of an outcome, nil for a grant.
func refusal(out lease.Outcome) error {
	switch {
	case out.Kind == lease.Granted:
		return nil
	case out.Kind == lease.Held && out.Err != nil:
		return fmt.Errorf("%w by %q: %w", lease.ErrHeld, out.Record.Holder, out.Err)
	case out.Kind == lease.Held:
		return fmt.Errorf("%w by %q", lease.ErrHeld, out.Record.Holder)
	}
	return out.Err
}

// Do acquires, runs fn with a context that Lose and a release cancel, and releases; of several at once, the last one does.
// Its errors wrap those of the real one.
func (m *mock) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	return m.do(ctx, fn, m.once)
}

// DoWait is Do that waits for a grant, as AcquireWait does.
func (m *mock) DoWait(ctx context.Context, fn func(ctx context.Context) error) error {
	return m.do(ctx, fn, m.wait)
}

// TryAcquire reports whether the next answer is a grant.
func (m *mock) TryAcquire(ctx context.Context) bool {
	return m.once(ctx, nil, nil).Kind == lease.Granted
}
