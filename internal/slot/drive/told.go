package drive

import (
	"context"
	"sync"
)

// Told is a value that others read, and whose changes they wait for. The zero Told has the zero value. It is
// safe for concurrent use.
type Told[T any] struct {
	mu      sync.Mutex
	value   T
	changed chan struct{}
}

// Get returns the value, and a channel that is closed with the next change.
func (t *Told[T]) Get() (v T, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	return t.value, t.changed
}

// Update replaces the value by what f makes of it, unless that is none. One f runs at a time.
func (t *Told[T]) Update(f func(old T) (v T, changed bool)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, changed := f(t.value)
	if !changed {
		return
	}
	t.value = v
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// Changes sends what of makes of the value, now and after each change, until ctx or over ends; then the
// channel is closed. A slow reader gets the newest value only.
func Changes[T, U any](ctx context.Context, t *Told[T], over <-chan struct{}, of func(T) U) <-chan U {
	told := make(chan U, 1)
	go func() {
		defer close(told)
		for {
			v, changed := t.Get()
			select {
			case <-told: // nobody has read it
			default:
			}
			told <- of(v)
			select {
			case <-changed:
			case <-ctx.Done():
				return
			case <-over:
				return
			}
		}
	}()
	return told
}
