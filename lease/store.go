package lease

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Errors of a Store. Every other error of Write means that the outcome is unknown: the write may have been
// committed, or may still be.
var (
	// ErrConflict is returned by Write when the store certainly did not write because the version had moved
	// on.
	ErrConflict = errors.New("lease: the version has moved on")
	// ErrRefused is wrapped by an error of Write when the store certainly did not write for another reason
	// (no right to, not valid, too large). An error of Read that wraps it says that asking again at once is
	// futile. Where it stands its package has been named: the text does not do so again.
	ErrRefused = errors.New("the store refused the request")
	// ErrTooLarge is wrapped, together with ErrRefused, when the record does not fit.
	ErrTooLarge = errors.New("lease: the record is too large")
)

// MaxToken is the largest token. It fits a signed number of 64 bits: what databases store (BIGINT in SQL,
// long in BSON), and what a fence takes.
const MaxToken uint64 = math.MaxInt64

// Version identifies one state of the stored record; it is opaque. Empty: the record does not exist.
type Version string

// Record is everything the store keeps for one lease.
type Record struct {
	// Holder is the owner that holds the lease, empty when it is free.
	Holder string
	// Token is the fencing token: it grows by one with each change of holder or verdict, never goes back, and
	// ends at MaxToken.
	Token uint64
	// Nonce names the attempt that wrote the present token.
	Nonce string
	// TTL is how long the holder stays the holder without a sign of life. Zero: for ever. Readers cap it by
	// their own settings.
	TTL time.Duration
	// Acquired and Renewed are the holder's wall clock, in whole milliseconds. They are for people: nothing
	// is decided by them.
	Acquired, Renewed time.Time
	// Verdict is the last verdict, nil if none was ever written. It stays when the lease is released.
	Verdict *sbr.Verdict
	// Moved says that the lease is in another store now: no Lease writes this record any more. Zero: it is
	// here. See Move.
	Moved Moved
	// Behind is set by Lease, never by a store, which does not keep it: the store went backwards. Token and
	// Verdict are the newest that this Lease has seen; the store holds less.
	Behind bool
}

// Snapshot is a record together with its version.
type Snapshot struct {
	Record  Record
	Version Version
}

// Store keeps one record and changes it only by compare-and-swap. It knows nothing of time, owners or
// heartbeats: Lease does. Implementations are safe for concurrent use, honour ctx, and retry nothing by
// themselves.
type Store interface {
	// Read returns the present record. A record that does not exist is the zero Snapshot without an error.
	// It must not answer from a cache that may be older than the latest write it has acknowledged to any
	// client.
	Read(ctx context.Context) (Snapshot, error)
	// Write replaces the record if its version still is prev (empty: if it does not exist) and returns the
	// new version. A Read must show the record as it was given; its times are whole milliseconds. ErrConflict
	// and ErrRefused mean certainly not written; any other error means unknown.
	Write(ctx context.Context, r Record, prev Version) (Version, error)
}

// The optional abilities of a Store: a lease does without them.

// Limiter is a Store that is shared with programs which expire holders by rules of their own.
type Limiter interface {
	// Window returns for how long a holder with these settings may trust one heartbeat, counted from the
	// moment it was sent. New takes the smaller one of this and Settings.Window. An error says that no such
	// time exists: New fails with it.
	Window(s Settings) (time.Duration, error)
}

// Identified is a Store that can tell which store it is, so that members of one cluster find out that they
// use different ones.
type Identified interface {
	// Identity returns one text to all users of one store, and another text to users of another store, as far
	// as that can be told. It stays the same for as long as the store exists, whatever becomes of the record.
	// An error says that it is not known: that is no reason to take the store for another one.
	Identity(ctx context.Context) (string, error)
}

// Located is a Store that can say where its record is. Two Stores of one record answer the same; two of
// different records never do.
type Located interface{ Location() string }

// Announcer is a Store that can show people, where they look at its record, what happens to the members that
// share it.
type Announcer interface {
	// Announce shows what happened, as one word (CamelCase) and as a sentence; warning says that an operator
	// should look. What fails is lost, and changes nothing else. An error that wraps ErrRefused says that
	// this user may not.
	Announce(ctx context.Context, reason, text string, warning bool) error
}

// Watcher is a Store that can report changes as they happen.
type Watcher interface {
	// Watch opens one stream: it calls fn, one call at a time, with the present record and again after each
	// change. A record that does not exist need not be reported at the start; a deletion is a change, to the
	// zero Snapshot. It may skip intermediate states, or report one twice, but does not end on an old one.
	//
	// It returns when the stream ends, as each one may: nil, or why. To go on, open another one: see Follow.
	// An error that wraps ErrRefused says that this user may not watch, one that wraps errors.ErrUnsupported
	// that no user can. An error with a method RetryAfter() time.Duration says for how long the server wants
	// to be left alone.
	Watch(ctx context.Context, fn func(Snapshot)) error
}

// DryRunner is a Store that can try a write without making it.
type DryRunner interface {
	// DryRun asks whether the next write would be taken, and changes nothing. An error that wraps ErrRefused
	// says no; any other one says nothing about it.
	DryRun(ctx context.Context) error
}

// Preflight tries what a store will need, as far as that can be tried, and changes nothing: what the store's
// own method Preflight does, or else a read and a dry run. The error lists every problem on a line of its
// own; it wraps ErrRefused where the store will not work as things are.
func Preflight(ctx context.Context, s Store) error {
	if own, ok := s.(interface {
		Preflight(ctx context.Context) error
	}); ok {
		return own.Preflight(ctx)
	}
	d, ok := s.(DryRunner)
	if !ok {
		return nil
	}
	if _, err := s.Read(ctx); err != nil {
		return err // the write would fail for the same reason
	}
	return d.DryRun(ctx)
}

// wall is t as a record keeps it.
func wall(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// touched is r with another time. It grows even if the wall clock does not, so that others see the change; a
// millisecond is the finest that a record has.
func touched(r Record, now time.Time) Record {
	at := wall(now)
	if next := r.Renewed.Add(time.Millisecond); at.Before(next) {
		at = next
	}
	r.Renewed = at
	return r
}

// clone returns a copy that shares nothing with r.
func (r Record) clone() Record {
	r.Verdict = r.Verdict.Clone()
	return r
}

func (s Snapshot) clone() Snapshot { return Snapshot{s.Record.clone(), s.Version} }

// newest returns the later of two verdicts. Of two with one token, which only a store that forgot can bring
// about, it is b, which was read last.
func newest(a, b *sbr.Verdict) *sbr.Verdict {
	if a == nil || (b != nil && b.Token >= a.Token) {
		return b
	}
	return a
}
