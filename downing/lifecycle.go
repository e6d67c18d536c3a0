package downing

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/patience"
)

// Lifecycle is how an engine tells the application what becomes of its member.
type Lifecycle struct {
	log    *slog.Logger
	grace  time.Duration
	exit   func(int)
	downed chan struct{}
	done   chan struct{}
	called func(kind string, took time.Duration, panicked bool) // a callback has returned; may be nil
	left   chan struct{}
	// followers are told of every change.
	followers followers

	mu                          sync.Mutex
	onSuspend, onResume, onDown []func(string)
	reason                      string
	calls                       []func()
	running, isDown, hasLeft    bool
}

func newLifecycle(cfg *Config) *Lifecycle {
	l := &Lifecycle{log: cfg.logger(), followers: followers{log: cfg.logger()}, grace: cfg.Grace, exit: cfg.Exit, downed: make(chan struct{}), done: make(chan struct{}), left: make(chan struct{})}
	if l.exit == nil {
		l.exit = os.Exit
	}
	return l
}

func (l *Lifecycle) add(list *[]func(string), f func(string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*list = append(*list, f)
}

// addDown adds a callback for Down, which must not be missed: after it, the callback runs at once.
func (l *Lifecycle) addDown(f func(string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isDown {
		go l.run(callbackDown, f, l.reason)
		return
	}
	l.onDown = append(l.onDown, f)
}

// Reason is the sentence that says why the member was downed; empty before.
func (l *Lifecycle) Reason() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reason
}

// leave notes that the node has left its cluster by itself.
func (l *Lifecycle) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.hasLeft && !l.isDown {
		l.hasLeft = true
		close(l.left)
	}
}

// isOver reports whether the member was downed.
func (l *Lifecycle) isOver() bool {
	select {
	case <-l.downed:
		return true
	default:
		return false
	}
}

// Suspend runs the callbacks of OnSuspend.
func (l *Lifecycle) Suspend(reason string) {
	l.call(callbackSuspend, reason, func() []func(string) { return l.onSuspend })
}

// Resume runs the callbacks of OnResume.
func (l *Lifecycle) Resume(reason string) {
	l.call(callbackResume, reason, func() []func(string) { return l.onResume })
}

// call queues callbacks; they run in order, one at a time, without holding anybody up.
func (l *Lifecycle) call(kind, reason string, list func() []func(string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isDown {
		return
	}
	for _, f := range list() {
		l.calls = append(l.calls, func() { l.run(kind, f, reason) })
	}
	if !l.running && len(l.calls) > 0 {
		l.running = true
		go l.runCalls()
	}
}

func (l *Lifecycle) runCalls() {
	for {
		l.mu.Lock()
		if len(l.calls) == 0 {
			l.running = false
			l.mu.Unlock()
			return
		}
		f := l.calls[0]
		l.calls = l.calls[1:]
		l.mu.Unlock()
		f()
	}
}

// run runs one callback.
func (l *Lifecycle) run(kind string, f func(string), reason string) {
	began := time.Now()
	panicked := l.guard(f, reason)
	if l.called != nil {
		l.called(kind, time.Since(began), panicked)
	}
}

func (l *Lifecycle) guard(f func(string), reason string) (panicked bool) {
	defer func() {
		if p := recover(); p != nil {
			panicked = true
			l.log.Error("sbr: a callback panicked", "panic", fmt.Sprint(p))
		}
	}()
	f(reason)
	return false
}

// Down closes Downed, runs the callbacks and then leave, and ends the process, all within the grace. It returns at once, and
// does nothing the second time.
func (l *Lifecycle) Down(reason string, leave func(deadline time.Time)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isDown {
		return
	}
	l.isDown, l.reason = true, reason
	l.calls = nil // above all no late OnResume
	close(l.downed)
	l.followers.changed()
	go l.finish(reason, l.onDown, leave)
}

func (l *Lifecycle) finish(reason string, callbacks []func(string), leave func(time.Time)) {
	deadline := time.Now().Add(l.grace)
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		var wg sync.WaitGroup
		for _, f := range callbacks {
			wg.Go(func() { l.run(callbackDown, f, reason) })
		}
		l.guard(func(string) { leave(deadline) }, reason)
		wg.Wait()
	}()
	grace, stop := patience.WithTimeout(context.Background(), l.grace, nil)
	defer stop()
	select {
	case <-worked:
	case <-grace.Done():
		l.log.Error("sbr: the grace is over before everything was done", "grace", l.grace)
	}
	close(l.done)
	l.exit(ExitDowned)
}
