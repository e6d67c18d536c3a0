// Package inbox is the queue of a goroutine that owns some state: others post what it shall do.
//
// Posting never blocks and keeps the order. Nothing bounds the queue: a caller that posts on behalf of others
// bounds them.
package inbox

import "sync"

// Inbox is a queue of functions. Make it with New. It is safe for concurrent use.
type Inbox struct {
	mu     sync.Mutex
	queue  []func()
	closed bool
	wake   chan struct{}
}

// New returns an empty inbox.
func New() *Inbox { return &Inbox{wake: make(chan struct{}, 1)} }

// Post appends a function, and wakes who waits. After Close it does nothing.
func (b *Inbox) Post(f func()) {
	b.mu.Lock()
	if !b.closed {
		b.queue = append(b.queue, f)
	}
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Wake receives when something was posted since the last Take; now and then once too often.
func (b *Inbox) Wake() <-chan struct{} { return b.wake }

// Take returns all that is queued, the oldest first.
func (b *Inbox) Take() []func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queue
	b.queue = nil
	return q
}

// Len returns how many functions are queued. It keeps nothing alive but the inbox.
func (b *Inbox) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue)
}

// Close drops everything, now and later: the owner has ended, but who posts may go on for as long as the
// process.
func (b *Inbox) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed, b.queue = true, nil
}
