package downing

import (
	"fmt"
	"log/slog"
	"sync"
)

// followers are called after each change, each on a goroutine of its own that lives only while there is something to tell.
type followers struct {
	log *slog.Logger
	mu  sync.Mutex
	all map[*follower]struct{}
}

// follower is one function that is called after changes. Changes that come while it runs are told in one more call.
type follower struct {
	f func()

	mu                    sync.Mutex
	due, running, stopped bool
}

func (fs *followers) add(f func()) (stop func()) {
	one := &follower{f: f}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.all == nil {
		fs.all = make(map[*follower]struct{})
	}
	fs.all[one] = struct{}{}
	return func() {
		fs.mu.Lock()
		delete(fs.all, one)
		fs.mu.Unlock()
		one.stop()
	}
}

// changed never blocks, and runs nothing of anybody's on the caller's goroutine.
func (fs *followers) changed() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for one := range fs.all {
		one.poke(fs.log)
	}
}

func (f *follower) poke(log *slog.Logger) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return
	}
	f.due = true
	if !f.running {
		f.running = true
		go f.run(log)
	}
}

func (f *follower) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
}

func (f *follower) run(log *slog.Logger) {
	for f.take() {
		guard(log, "a function that follows the members", f.f)
	}
}

func (f *follower) take() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running = f.due && !f.stopped
	f.due = false
	return f.running
}

// guard runs what is not ours.
func guard(log *slog.Logger, what string, f func()) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("sbr: "+what+" panicked", "panic", fmt.Sprint(p))
		}
	}()
	f()
}
