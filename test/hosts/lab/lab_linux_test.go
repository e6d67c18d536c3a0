package lab_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/hosts/lab"
	"github.com/serf-sbr/serf-sbr/test/process"
)

const e2eEnv = "SBR_E2E"

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Getenv(e2eEnv) == "" {
		t.Skip("makes network namespaces, as root: run make e2e, which sets " + e2eEnv)
	}
	require.NoError(t, lab.Check())
}

func newLab(t *testing.T, hosts ...string) *lab.Lab {
	t.Helper()
	needsRoot(t)
	l, err := lab.New(t.Context(), lab.Options{Hosts: hosts})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// ears is one socket on each host.
type ears struct {
	t     *testing.T
	lab   *lab.Lab
	names []string
	conns map[string]net.PacketConn

	mu    sync.Mutex
	heard map[string]int // by what was said
}

func listen(t *testing.T, l *lab.Lab, names ...string) *ears {
	e := &ears{t: t, lab: l, names: names, conns: make(map[string]net.PacketConn), heard: make(map[string]int)}
	for _, name := range names {
		h := l.Host(name)
		var conn net.PacketConn
		var err error
		h.Do(func() { conn, err = net.ListenPacket("udp4", h.At(9)) })
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		e.conns[name] = conn
		go e.hear(conn, name)
	}
	return e
}

func (e *ears) hear(conn net.PacketConn, name string) {
	buf := make([]byte, 100)
	for {
		n, _, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		e.mu.Lock()
		e.heard[string(buf[:n])+" > "+name]++
		e.mu.Unlock()
	}
}

func (e *ears) say(from, to string) {
	addr := net.UDPAddrFromAddrPort(netip.AddrPortFrom(e.lab.Host(to).Address(), 9))
	_, err := e.conns[from].WriteTo([]byte(from), addr)
	require.NoError(e.t, err)
}

// links lets each host speak to each other and returns which heard which, such as "a>b b>a", in order.
func (e *ears) links() string {
	e.mu.Lock()
	clear(e.heard)
	e.mu.Unlock()
	for _, from := range e.names {
		for _, to := range e.names {
			if from != to {
				e.say(from, to)
			}
		}
	}
	// What has not come by now has been dropped: on a veth a packet is there when the call that sends it
	// returns, and is read at once.
	time.Sleep(100 * time.Millisecond)
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []string
	for _, from := range e.names {
		for _, to := range e.names {
			if e.heard[from+" > "+to] > 0 {
				all = append(all, from+">"+to)
			}
		}
	}
	return strings.Join(all, " ")
}

// require waits until those are heard that should be: a reader may be late on a busy machine, but what is
// dropped never comes.
func (e *ears) require(want string) {
	e.t.Helper()
	var got string
	for range 20 {
		if got = e.links(); got == want {
			return
		}
	}
	require.Equal(e.t, want, got)
}

func TestFaults_OnTheWire(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	e := listen(t, l, "a", "b", "c")
	const whole = "a>b a>c b>a b>c c>a c>b"
	e.require(whole)
	for _, tc := range []struct {
		name string
		do   func() error
		want string
	}{
		{"two sides", func() error { return l.Partition([]string{"a", "b"}, []string{"c"}) }, "a>b b>a"},
		{"three sides", func() error { return l.Partition([]string{"a"}, []string{"b"}, []string{"c"}) }, ""},
		{"bridge", func() error { return l.Partition([]string{"a", "b"}, []string{"b", "c"}) }, "a>b b>a b>c c>b"},
		{"one link", func() error { return l.Cut("a", "b") }, "a>c b>c c>a c>b"},
		{"one way", func() error { return l.CutOneWay("a", "b") }, "a>c b>a b>c c>a c>b"},
		{"isolated", func() error { return l.Isolate("b") }, "a>c c>a"},
		{"everything is lost", func() error { return l.Loss(100, "c") }, "a>b b>a c>a c>b"},
		{"cuts add up", func() error { _ = l.Cut("a", "b"); return l.Cut("b", "c") }, "a>c c>a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.NoError(t, tc.do())
			e.require(tc.want)
			require.NoError(t, l.Heal())
			e.require(whole)
		})
	}
	for _, name := range e.names {
		rules, err := l.Host(name).Rules(t.Context())
		require.NoError(t, err)
		require.Empty(t, rules, "healed means that there is no rule")
	}
}

func TestLoss_IsWhatWasAskedFor(t *testing.T) {
	l := newLab(t, "a", "b")
	e := listen(t, l, "a", "b")
	require.NoError(t, l.Loss(30, "b"))
	const burst, packets = 100, 2000 // a socket's buffer holds some 270
	arrived := func() int {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.heard["a > b"]
	}
	for range packets / burst {
		before := arrived()
		for range burst {
			e.say("a", "b")
		}
		require.Eventually(t, func() bool { return arrived() >= before+burst/2 }, time.Minute, time.Millisecond)
	}
	require.InDelta(t, 0.7*packets, arrived(), 0.06*packets)
	require.NoError(t, l.HealLinks(), "loss is a fault of links")
	rules, err := l.Host("b").Rules(t.Context())
	require.NoError(t, err)
	require.Empty(t, rules)
}

func TestFlap_EndsHealed(t *testing.T) {
	l := newLab(t, "a", "b")
	e := listen(t, l, "a", "b")
	ctx, cancel := context.WithCancel(t.Context())
	cuts := make(chan struct{}, 100)
	done := make(chan error, 1)
	go func() {
		done <- l.Flap(ctx, 20*time.Millisecond, 20*time.Millisecond,
			func() error { cuts <- struct{}{}; return l.Cut("a", "b") })
	}()
	for range 3 {
		<-cuts
	}
	cancel()
	require.NoError(t, <-done)
	e.require("a>b b>a")
}

func TestFaults_UnknownHostsChangeNothing(t *testing.T) {
	l := newLab(t, "a", "b")
	e := listen(t, l, "a", "b")
	for _, err := range []error{
		l.Cut("a", "x"), l.CutOneWay("x", "a"), l.Partition([]string{"a"}, []string{"b", "x"}), l.Isolate("x"),
		l.Loss(100, "b", "x"),
		l.Loss(101, "a"), l.CutStore("a"),
	} {
		require.ErrorContains(t, err, "lab: ")
	}
	e.require("a>b b>a")
}

func TestSupervisor_StartsAgainUntilItIsSwitchedOff(t *testing.T) {
	l := newLab(t, "a")
	s, err := l.Host("a").Supervise(process.Command{Name: "sh", Program: "/bin/sh",
		Args: []string{"-c", "sleep 0.1; exit 70"}}, 50*time.Millisecond)
	require.NoError(t, err)
	second, err := s.WaitExit(within(t, 10*time.Second), 2)
	require.NoError(t, err)
	first := s.Exits()[0]
	require.Equal(t, 70, second.Code)
	require.Greater(t, second.At.Sub(first.At), 150*time.Millisecond,
		"it waits before it starts it again, and it runs for a while")

	s.SetRestart(false)
	require.Eventually(t, func() bool { return !s.Process().Alive() }, 10*time.Second, time.Millisecond)
	p := s.Process()
	time.Sleep(200 * time.Millisecond)
	require.Same(t, p, s.Process())
	s.SetRestart(true)
	require.Eventually(t, func() bool { return s.Process() != p }, 10*time.Second, time.Millisecond)
	require.NoError(t, s.Err())
}

func TestSupervisor_RestartsWhatIsKilled(t *testing.T) {
	l := newLab(t, "a")
	s, err := l.Host("a").Supervise(process.Command{Name: "sleep", Program: "/bin/sleep", Args: []string{"60"}},
		time.Millisecond)
	require.NoError(t, err)
	p := s.Process()
	require.NoError(t, p.Pause(within(t, 10*time.Second)))
	p.Kill()
	exit, err := s.WaitExit(within(t, 10*time.Second), 1)
	require.NoError(t, err)
	require.Equal(t, -1, exit.Code)
	require.Eventually(t, func() bool { return s.Process() != p && s.Process().Alive() }, 10*time.Second,
		time.Millisecond)
}

// The statuses of RestartPreventExitStatus are final, and the program may be another one at the next start.
func TestSupervisor_EndsWithAFinalStatus(t *testing.T) {
	l := newLab(t, "a")
	log := l.Host("a").File("false.log")
	s, err := l.Host("a").Supervise(process.Command{Name: "false", Program: "/bin/false", Log: log},
		time.Millisecond, 2)
	require.NoError(t, err)
	_, err = s.WaitExit(within(t, 10*time.Second), 2)
	require.NoError(t, err, "1 is not final")
	script := l.Host("a").File("two.sh")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho no such key\nexit 2\n"), 0o755))
	s.SetProgram(script)
	require.Eventually(t, func() bool { return s.Err() != nil }, 10*time.Second, time.Millisecond)
	require.ErrorContains(t, s.Err(), "ended with status 2, after which it is not started again: no such key")
	ended := len(s.Exits())
	s.SetRestart(true)
	time.Sleep(50 * time.Millisecond)
	require.Len(t, s.Exits(), ended, "nobody starts it")
}

// The API server is on the network like every host: a host that is cut off from it gets no answer, and a
// killed server comes back with what it knew.
func TestAPI_OnAHostOfItsOwn(t *testing.T) {
	l := newLab(t, "a", "b")
	api, err := l.StartAPI(t.Context(), "api", t.Output())
	require.NoError(t, err)
	get := func(host string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		conn, err := l.Host(host).DialContext(ctx, "tcp", strings.TrimPrefix(api.URL(), "https://"))
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	require.NoError(t, get("a"))
	require.NoError(t, l.CutStore("a"))
	require.Error(t, get("a"))
	require.NoError(t, get("b"))
	require.NoError(t, l.HealLinks())
	require.Error(t, get("a"), "that is about links between members")
	require.NoError(t, l.HealStore("a"))
	require.NoError(t, get("a"))

	kubeconfig, err := api.LeastPrivilegeKubeconfig(t.Context(), "lab", "payments-sbr")
	require.NoError(t, err)
	require.FileExists(t, kubeconfig)
	api.KillEtcd()
	api.KillAPIServer()
	require.Error(t, get("a"))
	require.NoError(t, api.StartEtcd(t.Context()))
	require.NoError(t, api.StartAPIServer(t.Context()))
	code, _, err := api.Do(t.Context(), http.MethodGet, "/api/v1/namespaces/lab", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code, "etcd has kept what it had")
}

func TestLab_TwoAtOnce(t *testing.T) {
	one, two := newLab(t, "a", "b"), newLab(t, "a", "b")
	require.NoError(t, one.Cut("a", "b"))
	listen(t, one, "a", "b").require("")
	listen(t, two, "a", "b").require("a>b b>a")
}

func TestLab_AddHost(t *testing.T) {
	l := newLab(t, "a")
	require.NoError(t, l.Partition([]string{"a"}))
	_, err := l.AddHost(t.Context(), "b")
	require.NoError(t, err)
	listen(t, l, "a", "b").require("a>b b>a")
	_, err = l.AddHost(t.Context(), "b")
	require.ErrorContains(t, err, "already")
	require.NoError(t, l.Close())
	_, err = l.AddHost(t.Context(), "c")
	require.ErrorContains(t, err, "closed")
}

func TestLab_FailureLeavesNothing(t *testing.T) {
	needsRoot(t)
	before := namespaces(t)
	_, err := lab.New(t.Context(), lab.Options{Hosts: []string{"a", "b", "a"}})
	require.ErrorContains(t, err, "already")
	require.Equal(t, before, namespaces(t))
}

func TestClient_IsOnTheHost(t *testing.T) {
	l := newLab(t, "a")
	h := l.Host("a")
	var listener net.Listener
	var err error
	h.Do(func() { listener, err = net.Listen("tcp", "127.0.0.1:80") })
	require.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") })}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	response, err := h.Client().Get("http://127.0.0.1:80/")
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
}
