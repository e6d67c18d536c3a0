package lease

import (
	"log/slog"
	"time"
)

// What happens to a Machine, and what it wants done: values, so that a checker can order them as it likes.

// OpID names an operation.
type OpID uint64

// RequestID names a request to the store.
type RequestID uint64

// Event is what happens: Begin, Cancel, Answered, Failed, Heard, Tick or Closed.
type Event interface{ event() }

// The events.
type (
	// Begin asks for an operation: AcquireOp, ReleaseOp, ForceOp, ChangeOp or ReadOp. At Deadline it is given
	// up. With Cause it has been given up already. Hurry is when a Cancel is to be expected, zero for never:
	// its requests are to fail before.
	Begin struct {
		Op              OpID
		Do              any
		Deadline, Hurry time.Time
		Cause           error
	}
	// Cancel gives an operation up.
	Cancel struct {
		Op    OpID
		Cause error
	}
	// Answered is the answer to a request: the state that a read shows, or the version that a write made.
	Answered struct {
		Request  RequestID
		Snapshot Snapshot
	}
	// Failed is the failure of a request. A write certainly did not take place only if Err wraps ErrConflict
	// or ErrRefused.
	Failed struct {
		Request RequestID
		Err     error
	}
	// Heard is a report of a watch. News answers it, unless it may be late.
	Heard struct{ Snapshot Snapshot }
	// Tick says that it is time: see Deadline.
	Tick struct{}
	// Closed ends everything.
	Closed struct{}
)

func (Begin) event()    {}
func (Cancel) event()   {}
func (Answered) event() {}
func (Failed) event()   {}
func (Heard) event()    {}
func (Tick) event()     {}
func (Closed) event()   {}

// The operations.
type (
	// AcquireOp is an Acquire. Nonce marks everything that it writes.
	AcquireOp struct {
		Proposal Proposal
		Nonce    string
	}
	// ReleaseOp is a Release: of that tenure (Finished.Tenure), or of whatever is held.
	ReleaseOp struct{ Tenure uint64 }
	// ForceOp is a ForceRelease.
	ForceOp struct{ Holder string }
	// ChangeOp writes what Next makes of the record, unless it says that there is nothing to be written.
	ChangeOp struct {
		Next func(r Record, now time.Time) (next Record, writes bool, err error)
	}
	// ReadOp is a Read.
	ReadOp struct{}
)

// Effect is what is to be done: Send, Abort, Finished, Ended, News or Note.
type Effect interface{ effect() }

// The effects.
type (
	// Send sends a request to the store and reports its answer or failure, at the latest after Timeout.
	Send struct {
		Op      OpID
		Request RequestID
		Write   bool
		Record  Record
		Prev    Version
		Timeout time.Duration
	}
	// Abort gives a request up. Its failure, or its answer, is still to be reported.
	Abort struct {
		Request RequestID
		Cause   error
	}
	// Finished is the end of an operation. Err is nil where it did what it was for. Snapshot is the record
	// then; Expired is as in ForceRelease. Tenure names the time of holding the lease that an Acquire has
	// begun, or joined.
	Finished struct {
		Op       OpID
		Tenure   uint64
		Snapshot Snapshot
		Expired  bool
		Err      error
	}
	// Ended says that the lease is held no more. Reason is as in Grant.Err.
	Ended struct {
		Tenure uint64
		Reason error
	}
	// News is the record that a Heard has brought.
	News struct{ Record Record }
	// Note is for the log.
	Note struct {
		Level slog.Level
		Text  string
		Args  []any
	}
)

func (Send) effect()     {}
func (Abort) effect()    {}
func (Finished) effect() {}
func (Ended) effect()    {}
func (News) effect()     {}
func (Note) effect()     {}
