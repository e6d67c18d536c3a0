package linear

import (
	"errors"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Answer is what an Acquire has answered, as one value for tests to compare.
type Answer struct {
	Kind sbr.Outcome
	// Grant is the HeldError's if there is one.
	Grant *lease.Grant
	// Record is the grant's, or that of the HeldError, as are Superseded and RetryAfter.
	Record     lease.Record
	Superseded bool
	RetryAfter time.Duration
	// Err is nil where there is no more to be said than that it is granted or held.
	Err error
}

// AnswerOf returns what an Acquire has answered.
func AnswerOf(g *lease.Grant, err error) Answer {
	a := Answer{Kind: lease.OutcomeOf(err), Grant: g, Err: err}
	if g != nil {
		a.Record = g.Record()
	}
	if held := (*lease.HeldError)(nil); errors.As(err, &held) {
		a.Record, a.Superseded, a.RetryAfter, a.Grant = held.Record, held.Superseded, held.RetryAfter, held.Grant
		if held.Error() == err.Error() {
			a.Err = nil
		}
	}
	return a
}

// Following calls lost when the grant has ended without a word of its owner.
func (a Answer) Following(lost func(error)) Answer {
	if a.Grant == nil {
		return a
	}
	go func() {
		<-a.Grant.Done()
		if err := a.Grant.Lost(); err != nil {
			lost(err)
		}
	}()
	return a
}
