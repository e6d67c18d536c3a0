package memnet_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing/memnet"
)

// TestNetwork_ConcurrentUse runs on the real clock: in a synctest bubble the
// advance of virtual time would order accesses that are not ordered at all.
func TestNetwork_ConcurrentUse(t *testing.T) {
	n := memnet.New(memnet.Config{
		Latency: 100 * time.Microsecond, Jitter: 200 * time.Microsecond,
	})
	names := []string{"a", "b", "c", "d"}
	require.NoError(t, n.Add(names...))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { live(t, n, name, names, uint64(i)) })
	}
	stop, disturbed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(disturbed)
		disturb(n, names, stop)
	}()
	wg.Wait()
	close(stop)
	<-disturbed
}

// live starts name over and over; each run talks to random others and answers
// streams, until it is shut down.
func live(t *testing.T, n *memnet.Network, name string, names []string, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 20 {
		tr, err := n.Transport(name)
		if err != nil {
			t.Error(err)
			return
		}
		down := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { answer(tr, down) })
		for range 30 {
			addr, _ := n.Addr(names[rng.IntN(len(names))])
			_, _ = tr.WriteTo([]byte("packet"), addr)
			if conn, err := tr.DialTimeout(addr, 2*time.Millisecond); err == nil {
				_ = conn.SetDeadline(time.Now().Add(2 * time.Millisecond))
				_, _ = conn.Write([]byte("stream"))
				_, _ = readString(conn)
				_ = conn.Close()
			}
		}
		if tr.Shutdown() != nil {
			t.Error("shutdown failed")
		}
		close(down)
		wg.Wait()
	}
}

func answer(tr *memnet.Transport, down <-chan struct{}) {
	for {
		select {
		case <-tr.PacketCh():
		case conn := <-tr.StreamCh():
			_ = conn.SetDeadline(time.Now().Add(2 * time.Millisecond))
			if got, err := readString(conn); err == nil {
				_, _ = conn.Write([]byte(got))
			}
			_ = conn.Close()
		case <-down:
			return
		}
	}
}

// disturb cuts, freezes and undoes both in turns until stop is closed.
func disturb(n *memnet.Network, names []string, stop <-chan struct{}) {
	rng := rand.New(rand.NewPCG(9, 9))
	for {
		select {
		case <-stop:
			return
		case <-time.After(100 * time.Microsecond):
		}
		a, b := names[rng.IntN(len(names))], names[rng.IntN(len(names))]
		switch rng.IntN(8) {
		case 0:
			_ = n.Cut(a, b)
		case 1:
			_ = n.CutOneWay(a, b)
		case 2:
			_ = n.Freeze(a)
		case 3:
			_ = n.Partition([]string{"a", "b"}, []string{"c", "d"})
		case 4:
			_ = n.Mend(a, b)
		case 5:
			n.Heal()
		default:
			_ = n.Thaw(a)
		}
	}
}
