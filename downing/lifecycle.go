package downing

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/patience"
	"github.com/serf-sbr/serf-sbr/internal/sleep"
)

// lifecycle is how an engine reports its member's state to the application.
type lifecycle struct {
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
	calls                       serial
	isDown, hasLeft             bool
}

func newLifecycle(cfg *Config) *lifecycle {
	l := &lifecycle{
		log: cfg.logger(), followers: followers{log: cfg.logger()}, grace: cfg.Grace, exit: cfg.Exit,
		downed: make(chan struct{}), done: make(chan struct{}), left: make(chan struct{}),
	}
	if l.exit == nil {
		l.exit = os.Exit
	}
	return l
}

func (l *lifecycle) add(list *[]func(string), f func(string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*list = append(*list, f)
}

// addDown adds a callback for Down, which must not be missed: after it, the callback runs at once.
func (l *lifecycle) addDown(f func(string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isDown {
		go l.run(callbackDown, f, l.reason)
		return
	}
	l.onDown = append(l.onDown, f)
}

// Reason is the sentence that says why the member was downed; empty before.
func (l *lifecycle) Reason() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reason
}

// leave notes that the node has left its cluster by itself.
func (l *lifecycle) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.hasLeft && !l.isDown {
		l.hasLeft = true
		close(l.left)
	}
}

// isOver reports whether the member was downed.
func (l *lifecycle) isOver() bool { return isClosed(l.downed) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Suspend runs the callbacks of OnSuspend.
func (l *lifecycle) Suspend(reason string) {
	l.call(callbackSuspend, reason, func() []func(string) { return l.onSuspend })
}

// Resume runs the callbacks of OnResume.
func (l *lifecycle) Resume(reason string) {
	l.call(callbackResume, reason, func() []func(string) { return l.onResume })
}

// call queues callbacks; they run in order, one at a time, without blocking the caller.
func (l *lifecycle) call(kind, reason string, list func() []func(string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isDown {
		return
	}
	for _, f := range list() {
		l.calls.post(func() { l.run(kind, f, reason) }, math.MaxInt)
	}
}

// run runs one callback.
func (l *lifecycle) run(kind string, f func(string), reason string) {
	began := time.Now()
	panicked := guard(l.log, "a callback", func() { f(reason) })
	if l.called != nil {
		l.called(kind, time.Since(began), panicked)
	}
}

// guard runs what is not ours.
func guard(log *slog.Logger, what string, f func()) (panicked bool) {
	defer func() {
		if p := recover(); p != nil {
			panicked = true
			log.Error("sbr: "+what+" panicked", "panic", fmt.Sprint(p))
		}
	}()
	f()
	return false
}

// Down closes Downed, runs the callbacks and then leave, and ends the process, all within the grace. It
// returns at once, and does nothing the second time.
func (l *lifecycle) Down(reason string, leave func(deadline time.Time)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isDown {
		return
	}
	l.isDown, l.reason = true, reason
	l.calls.clear() // above all no late OnResume
	close(l.downed)
	l.followers.changed()
	go l.finish(reason, l.onDown, leave)
}

// lastLine is how long the log may take for the last line of a process: nobody may read what it goes to.
const lastLine = time.Second

func (l *lifecycle) finish(reason string, callbacks []func(string), leave func(time.Time)) {
	deadline := time.Now().Add(l.grace)
	grace, stop := patience.WithTimeout(context.Background(), l.grace, nil)
	defer stop()
	if !sleep.Within(grace.Done(), func() {
		var wg sync.WaitGroup
		for _, f := range callbacks {
			wg.Go(func() { l.run(callbackDown, f, reason) })
		}
		guard(l.log, "a callback", func() { leave(deadline) })
		wg.Wait()
	}) {
		sleep.Within(time.After(lastLine), func() {
			l.log.Error("sbr: the grace is over before everything was done", "grace", l.grace)
		})
	}
	close(l.done)
	l.exit(ExitDowned)
}

// serial runs functions one at a time, in order, on a goroutine that lives only while there are some. It is
// safe for concurrent use.
type serial struct {
	mu      sync.Mutex
	queue   []func()
	running bool
}

// post queues f, and reports false if as many as most are waiting already. It never blocks.
func (s *serial) post(f func(), most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) >= most {
		return false
	}
	s.queue = append(s.queue, f)
	if !s.running {
		s.running = true
		go s.run()
	}
	return true
}

func (s *serial) run() {
	for f := s.next(); f != nil; f = s.next() {
		f()
	}
}

func (s *serial) next() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		s.running, s.queue = false, nil
		return nil
	}
	f := s.queue[0]
	s.queue[0] = nil // do not keep it until the queue is moved
	s.queue = s.queue[1:]
	return f
}

// clear takes out what waits.
func (s *serial) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = nil
}

// followers are called after each change, each one at a time. Changes that come while one runs are told in
// one more call.
type followers struct {
	log *slog.Logger
	mu  sync.Mutex
	all map[*serial]func()
}

func (fs *followers) add(f func()) (stop func()) {
	s := new(serial)
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.all == nil {
		fs.all = make(map[*serial]func())
	}
	fs.all[s] = f
	return func() {
		fs.mu.Lock()
		defer fs.mu.Unlock()
		delete(fs.all, s)
	}
}

// changed never blocks, and runs no follower on the caller's goroutine.
func (fs *followers) changed() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for s := range fs.all {
		s.post(func() { fs.call(s) }, 1)
	}
}

func (fs *followers) call(s *serial) {
	fs.mu.Lock()
	f := fs.all[s]
	fs.mu.Unlock()
	if f != nil { // it was not stopped meanwhile
		guard(fs.log, "a function that follows the members", f)
	}
}
