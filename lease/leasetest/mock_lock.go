package leasetest

import (
	"context"
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
)

// LockMock is a Mock with the methods of a *lock.Lock. Make it with Mock.Lock.
type LockMock struct{ *mock }

// Acquire gives the next answer: true, false, or the error of an unknown outcome.
func (m *LockMock) Acquire(ctx context.Context) (bool, error) {
	out := m.once(ctx, nil, nil)
	if out.Kind == lease.Unknown {
		return false, couldNot(out)
	}
	return out.Kind == lease.Granted, nil
}

// AcquireFor is Acquire; the mock knows no time.
func (m *LockMock) AcquireFor(ctx context.Context, _ time.Duration) (bool, error) {
	return m.Acquire(ctx)
}

// AcquireForever is Acquire.
func (m *LockMock) AcquireForever(ctx context.Context) (bool, error) { return m.Acquire(ctx) }

// AcquireWait passes over answers until there is a grant. After the last one it waits for another Script, or for the end of ctx.
func (m *LockMock) AcquireWait(ctx context.Context) error { return couldNot(m.wait(ctx, nil, nil)) }

// AcquireWaitFor is AcquireWait.
func (m *LockMock) AcquireWaitFor(ctx context.Context, _ time.Duration) error {
	return m.AcquireWait(ctx)
}

func couldNot(out lease.Outcome) error {
	if err := refusal(out); err != nil {
		return fmt.Errorf("could not acquire lock: %w", err)
	}
	return nil
}

// Held reports whether the mock is held: acquired, and neither lost nor released since.
func (m *LockMock) Held() bool { return m.isHeld() }

// Release gives up what is held; false without.
func (m *LockMock) Release(context.Context) (bool, error) {
	out := m.release()
	if out.Kind == lease.ReleaseUnknown {
		return false, fmt.Errorf("could not release lock: %w", out.Err)
	}
	return out.Kind == lease.Released, nil
}

// ForceRelease is Release.
func (m *LockMock) ForceRelease(ctx context.Context) (bool, error) { return m.Release(ctx) }

// Close gives up what is held without a release.
func (m *LockMock) Close() error {
	m.end(fmt.Errorf("%w: %w", lease.ErrLost, lease.ErrClosed))
	return nil
}
