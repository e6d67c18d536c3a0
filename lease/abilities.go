package lease

import (
	"context"
	"time"
)

// The optional abilities of a Store: a lease does without them.

// Limiter is a Store that is shared with programs which expire holders by rules of their own.
type Limiter interface {
	// Window returns for how long a holder with these settings may trust one heartbeat, counted from the moment it was sent.
	// New takes the smaller one of this and Settings.Window. An error says that no such time exists: New fails with it.
	Window(s Settings) (time.Duration, error)
}

// Identified is a Store that can tell which store it is, so that members of one cluster find out that they use different ones.
type Identified interface {
	// Identity returns one text to all who share the store, and another one to those who use another store, as far as that can be
	// told. It stays the same for as long as the store exists, whatever becomes of the record. An error says that it is not known:
	// that is no reason to take the store for another one.
	Identity(ctx context.Context) (string, error)
}

// Located is a Store that can say where its record is. Two Stores of one record answer the same; two of different records never do.
type Located interface{ Location() string }

// Watcher is a Store that can report changes as they happen.
type Watcher interface {
	// Watch opens one stream: it calls fn, one call at a time, with the present record and again after each change. A record that does
	// not exist need not be reported at the start; a deletion is a change, to the zero Snapshot. It may skip intermediate states but
	// does not end on an old one.
	//
	// It returns when the stream ends, as each one may: nil, or why. Whoever wants more of it opens another one: see Follow. An error
	// that wraps ErrRefused says that this user may not watch, one that wraps errors.ErrUnsupported that nobody can. An error with a
	// method RetryAfter() time.Duration says for how long the server wants to be left alone.
	Watch(ctx context.Context, fn func(Snapshot)) error
}
