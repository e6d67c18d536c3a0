package memnet_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing/memnet"
)

func TestPartition_Validation(t *testing.T) {
	n := memnet.New(memnet.Config{})
	trs := started(t, n, "a", "b", "c")
	require.NoError(t, n.Cut("a", "b"))
	for want, groups := range map[string][][]string{
		`memnet: partition: "c" is in no group`: {{"a"}, {"b"}},
		`memnet: partition: "a" is named twice`: {{"a"}, {"b", "a"}, {"c"}},
		`memnet: partition: group 2 is empty`:   {{"a", "b", "c"}, {}},
		`memnet: unknown name "d"`:              {{"a", "b"}, {"c", "d"}},
		`memnet: partition: "a" is in no group`: {},
	} {
		require.EqualError(t, n.Partition(groups...), want)
		require.Equal(t, []string{"ac", "bc", "ca", "cb"}, reach(t, trs), "nothing has changed")
	}
}

func TestCuts_Validation(t *testing.T) {
	n := memnet.New(memnet.Config{})
	require.NoError(t, n.Add("idle"))
	started(t, n, "a")
	require.EqualError(t, n.Cut("a", "x"), `memnet: unknown name "x"`)
	require.EqualError(t, n.CutOneWay("x", "a"), `memnet: unknown name "x"`)
	require.EqualError(t, n.Mend("a", "x"), `memnet: unknown name "x"`)
	require.EqualError(t, n.Cut("a", "a"), `memnet: "a" cannot be cut from itself`)
	require.EqualError(t, n.Freeze("x"), `memnet: unknown name "x"`)
	require.EqualError(t, n.Thaw("x"), `memnet: unknown name "x"`)
	require.EqualError(t, n.Freeze("idle"), `memnet: "idle" is not running and cannot be frozen`)
	require.NoError(t, n.Thaw("idle"))
}

// reach lists, as "ab", every ordered pair of distinct names that a packet can
// pass.
func reach(t *testing.T, trs map[string]*memnet.Transport) []string {
	t.Helper()
	pairs := []string{}
	names := slices.Sorted(maps.Keys(trs))
	for _, a := range names {
		for _, b := range names {
			if a == b {
				continue
			}
			send(t, trs[a], trs[b], a)
			if len(received(trs[b])) == 1 {
				pairs = append(pairs, a+b)
			}
		}
	}
	return pairs
}

func TestCuts_EachShape(t *testing.T) {
	n := memnet.New(memnet.Config{})
	trs := started(t, n, "a", "b", "c")
	all := []string{"ab", "ac", "ba", "bc", "ca", "cb"}
	require.Equal(t, all, reach(t, trs))

	require.NoError(t, n.Partition([]string{"c", "a"}, []string{"b"}))
	require.Equal(t, []string{"ac", "ca"}, reach(t, trs))

	require.NoError(t, n.Partition([]string{"a"}, []string{"b", "c"}))
	require.Equal(t, []string{"bc", "cb"}, reach(t, trs), "replaces the one before")

	require.NoError(t, n.Mend("b", "a"))
	require.Equal(t, []string{"ab", "ba", "bc", "cb"}, reach(t, trs), "b is a bridge")

	n.Heal()
	require.Equal(t, all, reach(t, trs))

	require.NoError(t, n.CutOneWay("a", "b"))
	require.Equal(t, []string{"ac", "ba", "bc", "ca", "cb"}, reach(t, trs))

	require.NoError(t, n.Cut("b", "c"))
	require.Equal(t, []string{"ac", "ba", "ca"}, reach(t, trs), "adds to the one before")

	require.NoError(t, n.Partition([]string{"a", "b", "c"}))
	require.Equal(t, all, reach(t, trs), "one group is a whole network")
}

func TestCuts_OutliveARestart(t *testing.T) {
	n := memnet.New(memnet.Config{})
	trs := started(t, n, "a", "b")
	require.NoError(t, n.Cut("a", "b"))
	require.NoError(t, trs["b"].Shutdown())
	trs["b"] = started(t, n, "b")["b"]
	require.Empty(t, reach(t, trs))
	require.NoError(t, n.Add("c"))
	require.NoError(t, n.Partition([]string{"a", "b"}, []string{"c"}))
	trs["c"] = started(t, n, "c")["c"]
	require.Equal(t, []string{"ab", "ba"}, reach(t, trs), "c was placed before it ran")
}

func TestCut_StopsWhatIsUnderWay(t *testing.T) {
	pair(t, 10*time.Millisecond, func(t *testing.T, n *memnet.Network, a, b *memnet.Transport) {
		send(t, a, b, "late")
		time.Sleep(9 * time.Millisecond)
		require.NoError(t, n.CutOneWay("a", "b"))
		time.Sleep(time.Second)
		require.Empty(t, received(b))
	})
}

func TestFreeze_HoldsBothWaysUntilThaw(t *testing.T) {
	n := memnet.New(memnet.Config{})
	trs := started(t, n, "a", "b")
	require.NoError(t, n.Freeze("b"))
	require.NoError(t, n.Freeze("b"), "again")
	for _, payload := range []string{"1", "2"} {
		send(t, trs["a"], trs["b"], "in"+payload)
		send(t, trs["b"], trs["a"], "out"+payload)
	}
	require.Empty(t, received(trs["a"]))
	require.Empty(t, received(trs["b"]))

	require.NoError(t, n.Thaw("b"))
	require.NoError(t, n.Thaw("b"), "again")
	require.Equal(t, []string{"out1", "out2"}, received(trs["a"]))
	require.Equal(t, []string{"in1", "in2"}, received(trs["b"]))
	require.Equal(t, []string{"ab", "ba"}, reach(t, trs))
}

func TestFreeze_CutsStillCountOnTheWayOut(t *testing.T) {
	n := memnet.New(memnet.Config{})
	trs := started(t, n, "a", "b")
	require.NoError(t, n.Freeze("b"))
	send(t, trs["b"], trs["a"], "stale")
	require.NoError(t, n.Cut("a", "b"))
	n.Heal()
	require.Empty(t, received(trs["a"]), "a heal thaws nobody")
	require.NoError(t, n.Cut("a", "b"))
	require.NoError(t, n.Thaw("b"))
	require.Empty(t, received(trs["a"]))
}

func TestFreeze_EndsWithTheRun(t *testing.T) {
	n := memnet.New(memnet.Config{})
	trs := started(t, n, "a", "b")
	require.NoError(t, n.Freeze("b"))
	send(t, trs["a"], trs["b"], "never read")
	send(t, trs["b"], trs["a"], "never sent")
	require.NoError(t, trs["b"].Shutdown())
	again := started(t, n, "b")["b"]
	require.Empty(t, received(again))
	require.Empty(t, received(trs["a"]))
	trs["b"] = again
	require.Equal(t, []string{"ab", "ba"}, reach(t, trs))
}

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
