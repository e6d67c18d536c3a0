// Package conduct has what the drivers of singletons and shards share: how functions of the application are called, and how questions of other members are kept
// until they are answered.
package conduct

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrExited is the end of a function that does not return: runtime.Goexit, as of t.FailNow in a test.
var ErrExited = errors.New("it ended its goroutine")

// Panicked is the end of a function that panics.
type Panicked struct {
	Value any
	Stack []byte
}

// Error is one line; the stack is not in it.
func (p *Panicked) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Go runs f on a goroutine of its own, and then calls ended with its error, however it ends.
func Go(f func() error, ended func(error)) {
	go func() {
		err := ErrExited
		defer func() {
			if p := recover(); p != nil {
				err = &Panicked{Value: p, Stack: debug.Stack()}
			}
			ended(err)
		}()
		err = f()
	}()
}

// Attributes are what a log line says of the end of a function.
func Attributes(err error) []any {
	if p, ok := errors.AsType[*Panicked](err); ok {
		return []any{"error", err, "stack", string(p.Stack)}
	}
	return []any{"error", err}
}

// maxQuestions bounds the questions that are kept. Older ones are dropped: they are asked again.
const maxQuestions = 1024

// Questions are those of others that have no answer yet: an answer may take as long as a run takes to end. The zero Questions is empty. It is not safe for
// concurrent use.
type Questions[M any] struct {
	next uint64
	open map[uint64]func(M) error
}

// Keep keeps a question and returns what it is known by.
func (q *Questions[M]) Keep(answer func(M) error) (ref uint64) {
	if q.open == nil {
		q.open = make(map[uint64]func(M) error)
	}
	q.next++
	q.open[q.next] = answer
	delete(q.open, q.next-maxQuestions)
	return q.next
}

// Answer answers a question, once. It does nothing where the question was dropped.
func (q *Questions[M]) Answer(ref uint64, m M) error {
	answer, ok := q.open[ref]
	if !ok {
		return nil
	}
	delete(q.open, ref)
	return answer(m)
}
