package kubetest

import "runtime"

// spawner starts all children from one thread of its own. The kernel sends the parent-death signal when the *thread* that forked
// dies, and Go lets a thread die with a goroutine that locked it, which tests in network namespaces do: any other thread could
// take the cluster along.
type spawner struct{ calls chan func() }

func newSpawner() *spawner {
	s := &spawner{calls: make(chan func())}
	go s.serve()
	return s
}

func (s *spawner) serve() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for call := range s.calls {
		call()
	}
}

// do runs call on the thread and waits for it.
func (s *spawner) do(call func()) {
	done := make(chan struct{})
	s.calls <- func() {
		defer close(done)
		call()
	}
	<-done
}

// close frees the thread. The children must be gone by then.
func (s *spawner) close() { close(s.calls) }
