package process

import "runtime"

// Thread starts children. The kernel sends the parent-death signal when the *thread* that forked dies, and Go
// lets a thread die with a goroutine that locked it, which tests in network namespaces do: any other thread
// could take the children along. Its methods may be called from several goroutines.
type Thread struct {
	calls chan func()
	ended chan struct{}
}

// NewThread returns a thread like any other. Close it when its children are gone.
func NewThread() *Thread {
	t, _ := NewThreadIn(func() error { return nil })
	return t
}

// NewThreadIn returns a thread that has run enter: if enter enters a network namespace, the thread's
// children, and the sockets that [Thread.Do] opens, are there. No other goroutine ever runs on the thread: it
// ends with Close. The error is that of enter.
func NewThreadIn(enter func() error) (*Thread, error) {
	t := &Thread{calls: make(chan func()), ended: make(chan struct{})}
	entered := make(chan error)
	go t.serve(enter, entered)
	if err := <-entered; err != nil {
		<-t.ended
		return nil, err
	}
	return t, nil
}

// serve never unlocks: what enter did to the thread must not reach another goroutine.
func (t *Thread) serve(enter func() error, entered chan<- error) {
	defer close(t.ended)
	runtime.LockOSThread()
	err := enter()
	entered <- err
	if err != nil {
		return
	}
	for call := range t.calls {
		call()
	}
}

// Do runs call on the thread and waits for it. It must not be called after Close.
func (t *Thread) Do(call func()) {
	done := make(chan struct{})
	t.calls <- func() {
		defer close(done)
		call()
	}
	<-done
}

// Close ends the thread and, on Linux, its remaining children.
func (t *Thread) Close() {
	close(t.calls)
	<-t.ended
}
