//go:build linux

package lab

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/serf-sbr/serf-sbr/test/process"
)

// Host is a network namespace with an address. Its methods may be called from several goroutines.
type Host struct {
	name      string
	namespace string
	address   netip.Addr
	dir       string
	thread    *process.Thread

	mu          sync.Mutex
	started     []*process.Process
	supervisors []*Supervisor
	client      *http.Client
}

func newHost(ctx context.Context, l *Lab, name string, number int) (*Host, error) {
	h := &Host{name: name, namespace: l.namespace(name), address: nth(number), dir: l.dir}
	if err := addNamespace(ctx, h.namespace); err != nil {
		return nil, err
	}
	port := fmt.Sprintf("veth%d", number)
	err := ip(ctx, l.bridge,
		fmt.Sprintf("link add %s type veth peer name eth0 netns %s", port, h.namespace),
		fmt.Sprintf("link set %s master br0 up", port))
	if err != nil {
		return nil, err
	}
	err = ip(ctx, h.namespace,
		"link set lo up", fmt.Sprintf("address add %s/%d dev eth0", h.address, subnet.Bits()), "link set eth0 up")
	if err != nil {
		return nil, err
	}
	if h.thread, err = process.NewThreadIn(h.enter); err != nil {
		return nil, fmt.Errorf("lab: host %s: %w", name, err)
	}
	return h, nil
}

// nth is the address of the nth host, from 1.
func nth(number int) netip.Addr {
	address := subnet.Addr()
	for range number {
		address = address.Next()
	}
	return address
}

// enter moves the calling thread into the host's namespace.
func (h *Host) enter() error {
	file, err := os.Open(filepath.Join(namespaces, h.namespace))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return unix.Setns(int(file.Fd()), unix.CLONE_NEWNET)
}

// Name is its name, Address its address.
func (h *Host) Name() string { return h.name }

// Address is the host's address: one for all that runs on it.
func (h *Host) Address() netip.Addr { return h.address }

// At is an address of the host with a port.
func (h *Host) At(port uint16) string { return netip.AddrPortFrom(h.address, port).String() }

// Do runs call on a thread that is on the host: what it starts and the sockets it opens are there. It should
// be short: starting processes waits for it.
func (h *Host) Do(call func()) { h.thread.Do(call) }

// File is a path in the lab's folder that begins with the host's name.
func (h *Host) File(name string) string { return filepath.Join(h.dir, h.name+"-"+name) }

// Start starts a process on the host. A Log that is empty is the file of the command's name, in the lab's
// folder. It ends with the lab.
func (h *Host) Start(c process.Command) (*process.Process, error) {
	if c.Log == "" {
		c.Log = h.File(c.Name + ".log")
	}
	p, err := process.Start(h.thread, c)
	if err != nil {
		return nil, fmt.Errorf("lab: host %s: %w", h.name, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.started = append(h.started, p)
	return p, nil
}

// Output runs a command on the host and returns what it says, also on standard error.
func (h *Host) Output(ctx context.Context, program string, args ...string) (string, error) {
	said, err := h.run(ctx, nil, program, args...)
	if err != nil {
		return said, fmt.Errorf("lab: host %s: %s: %w", h.name, program, err)
	}
	return said, nil
}

func (h *Host) run(ctx context.Context, stdin []byte, program string, args ...string) (string, error) {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	var err error
	h.thread.Do(func() { err = cmd.Start() })
	if err == nil {
		err = cmd.Wait()
	}
	return said.String(), err
}

const nftTimeout = 10 * time.Second

func (h *Host) nft(rules string) error {
	ctx, cancel := context.WithTimeout(context.Background(), nftTimeout)
	defer cancel()
	if said, err := h.run(ctx, []byte(rules), "nft", "-f", "-"); err != nil {
		return failed("nft on host "+h.name, said, err)
	}
	return nil
}

// Rules is what nft shows of the host's rules.
func (h *Host) Rules(ctx context.Context) (string, error) {
	return h.Output(ctx, "nft", "list", "ruleset")
}

// DialContext connects from the host, for this process. The address must be an IP address with a port.
func (h *Host) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	// A thread of its own: a caller that waits for a host that is cut off must not hold up others.
	thread, err := process.NewThreadIn(h.enter)
	if err != nil {
		return nil, fmt.Errorf("lab: host %s: %w", h.name, err)
	}
	defer thread.Close()
	var conn net.Conn
	thread.Do(func() { conn, err = new(net.Dialer).DialContext(ctx, network, address) })
	return conn, err
}

// Client is an HTTP client that is on the host.
func (h *Host) Client() *http.Client {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.client == nil {
		// Without keep-alive no connection outlives the host.
		h.client = &http.Client{Transport: &http.Transport{DialContext: h.DialContext, DisableKeepAlives: true}}
	}
	return h.client
}

func (h *Host) close() {
	h.mu.Lock()
	supervisors := h.supervisors
	h.mu.Unlock()
	for _, s := range supervisors {
		s.close()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.started {
		p.Kill()
	}
	h.thread.Close()
}
