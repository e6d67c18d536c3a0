package memnet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// Port is where every host of a [Network] listens: memberlist's default.
const Port = 7946

// queueLen is how many packets wait at a transport that does not read, and, each way, at a frozen host:
// enough for the bursts of a hundred nodes that join at once.
const queueLen = 1024

// Config says how a [Network] treats what it carries. The zero value delays nothing.
type Config struct {
	// Latency is the delay of one direction. 0 delivers a packet before WriteTo returns. A dial takes a round
	// trip, hence twice of it.
	Latency time.Duration

	// Jitter is added to Latency, drawn evenly from 0 to Jitter for each packet and each write to a stream; 0
	// adds nothing. Packets overtake each other where their draws say so; bytes of a stream never do.
	Jitter time.Duration

	// Loss is the share of packets that vanish, from 0 to 1. A stream loses none: what is lost of it is sent
	// again, which takes longer, as in TCP.
	Loss float64

	// Seed starts the generator behind Jitter and Loss. 0 is a seed like any other.
	Seed uint64
}

// possible reports whether a network can be so.
func (c Config) possible() bool { return c.Latency >= 0 && c.Jitter >= 0 && c.Loss >= 0 && c.Loss <= 1 }

// Network carries packets and streams between the transports that it hands out. Make one with [New]; the
// zero value is of no use. All methods are safe for concurrent use.
type Network struct {
	cfg Config

	// One lock for everything: a cut has to be one instant for all packets and streams, and nothing blocks or
	// calls out while holding it.
	mu      sync.Mutex
	rng     *rand.Rand
	hosts   []*host // in order of first appearance
	byName  map[string]*host
	byIP    map[netip.Addr]*host // also the addresses that a host has left
	lastIP  uint32
	cuts    map[link]struct{}
	links   map[link]Config // those that differ from cfg
	streams map[*stream]struct{}
	changed chan struct{} // closed and replaced when a waiting dial may go on
}

// link is one direction between two hosts.
type link struct{ from, to *host }

// host is what outlives a restart: a name, its address, its cuts.
type host struct {
	name    string
	ip      netip.Addr
	running *Transport // nil while nothing runs
	frozen  bool

	// What waits while frozen: packets out and in, and streams that the "kernel" accepted for a process that
	// does not run.
	heldOut, heldIn []*datagram
	heldStreams     []*conn
}

// New returns a network without hosts. It panics if a time is negative, or the loss is no share.
func New(cfg Config) *Network {
	if !cfg.possible() {
		panic(fmt.Sprintf("memnet: impossible network: %+v", cfg))
	}
	return &Network{
		cfg:     cfg,
		rng:     rand.New(rand.NewPCG(cfg.Seed, 0)),
		byName:  map[string]*host{},
		byIP:    map[netip.Addr]*host{},
		cuts:    map[link]struct{}{},
		links:   map[link]Config{},
		streams: map[*stream]struct{}{},
		changed: make(chan struct{}),
	}
}

// Add makes names known, with their addresses, before anything runs there. Use it to settle the order of
// addresses, or to place a node on one side of a partition before it starts. A name that is known already
// is left as it is.
func (n *Network) Add(names ...string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range names {
		h, err := n.ensureHost(name)
		if err != nil {
			return err
		}
		if err := n.settle(h); err != nil {
			return err
		}
	}
	return nil
}

// Addr returns where name can be reached, as "IP:port", whether or not something runs there: what Serf and
// memberlist want to be told in Join.
func (n *Network) Addr(name string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h, err := n.host(name)
	if err != nil {
		return "", err
	}
	return h.addrPort().String(), nil
}

// Transport starts name and returns its transport, for the field Transport of a memberlist.Config. New
// names get 10.0.0.1, 10.0.0.2 and so on; a name that ran before keeps its address. It is an error if name
// still runs.
//
// A new name is not part of a partition made before: it reaches all hosts until [Network.Partition] is called
// again. See [Network.Add].
func (n *Network) Transport(name string) (*Transport, error) { return n.start(name, n.settle) }

// TransportAt is [Network.Transport] at another address, which name keeps from then on: a rescheduled pod,
// or a test that wants one address below another. The zero ip asks for an unused address. It is an error if
// another name has or had ip. Dials to the former address are refused.
func (n *Network) TransportAt(name string, ip netip.Addr) (*Transport, error) {
	return n.start(name, func(h *host) error {
		if ip.IsValid() {
			return n.claimIP(h, ip.Unmap())
		}
		return n.freshIP(h)
	})
}

func (n *Network) start(name string, settle func(*host) error) (*Transport, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h, err := n.ensureHost(name)
	if err != nil {
		return nil, err
	}
	if h.running != nil {
		return nil, fmt.Errorf("memnet: %q is running; shut its transport down first", name)
	}
	if err := settle(h); err != nil {
		return nil, err
	}
	h.running = &Transport{
		net: n, host: h, addr: h.addrPort(),
		packets: make(chan *memberlist.Packet, queueLen), conns: make(chan net.Conn, backlog),
	}
	n.pathsChanged()
	return h.running, nil
}

// host returns a known name's host. The lock is held, as in all that follows.
func (n *Network) host(name string) (*host, error) {
	h, ok := n.byName[name]
	if !ok {
		return nil, fmt.Errorf("memnet: unknown name %q", name)
	}
	return h, nil
}

// ensureHost returns the host of name. A new one becomes known only with its address, so that a start which
// fails leaves nothing behind.
func (n *Network) ensureHost(name string) (*host, error) {
	if name == "" {
		return nil, errors.New("memnet: a name must not be empty")
	}
	if h, ok := n.byName[name]; ok {
		return h, nil
	}
	return &host{name: name}, nil
}

// settle gives a host an address, unless it has one.
func (n *Network) settle(h *host) error {
	if h.ip.IsValid() {
		return nil
	}
	return n.freshIP(h)
}

func (n *Network) freshIP(h *host) error {
	const last = 1<<24 - 2 // 10.255.255.254
	for n.lastIP < last {
		n.lastIP++
		ip := netip.AddrFrom4([4]byte{10, byte(n.lastIP >> 16), byte(n.lastIP >> 8), byte(n.lastIP)})
		if _, taken := n.byIP[ip]; !taken {
			return n.claimIP(h, ip)
		}
	}
	return errors.New("memnet: no address is left in 10.0.0.0/8")
}

func (n *Network) claimIP(h *host, ip netip.Addr) error {
	if ip.IsUnspecified() || ip.IsMulticast() || ip.Zone() != "" {
		return fmt.Errorf("memnet: %v cannot be the address of a host", ip)
	}
	if other, taken := n.byIP[ip]; taken && other != h {
		return fmt.Errorf("memnet: %v belongs to %q", ip, other.name)
	}
	if !h.ip.IsValid() {
		n.byName[h.name] = h
		n.hosts = append(n.hosts, h)
	}
	n.byIP[ip] = h
	h.ip = ip
	return nil
}

func (h *host) addrPort() netip.AddrPort { return netip.AddrPortFrom(h.ip, Port) }

// listening returns the host that answers at dst now, or nil.
func (n *Network) listening(dst netip.AddrPort) *host {
	h := n.byIP[dst.Addr()]
	if h == nil || h.running == nil || h.running.addr != dst {
		return nil
	}
	return h
}

// quality is how what one host sends to another is treated.
func (n *Network) quality(from, to *host) Config {
	if c, own := n.links[link{from, to}]; own {
		return c
	}
	return n.cfg
}

// delay draws the time that one packet or one write takes from one host to another.
func (n *Network) delay(from, to *host) time.Duration {
	c := n.quality(from, to)
	d := c.Latency
	if c.Jitter > 0 {
		d += time.Duration(n.rng.Int64N(int64(c.Jitter) + 1))
	}
	return d
}

// lost draws whether a packet vanishes.
func (n *Network) lost(from, to *host) bool {
	loss := n.quality(from, to).Loss
	return loss > 0 && n.rng.Float64() < loss
}

// The first waits of TCP before it sends something again: of a handshake, and of data.
const (
	resendHandshake = time.Second
	resendData      = 200 * time.Millisecond
)

// resent draws how long sending again takes of what a stream has lost on its way, there or, as the answer to
// it, back: each wait is twice the last one. It ends where no dial waits any longer.
func (n *Network) resent(from, to *host, wait time.Duration) (d time.Duration) {
	const patience = time.Minute
	for d < patience && (n.lost(from, to) || n.lost(to, from)) {
		d, wait = d+wait, 2*wait
	}
	return d
}

// pathsChanged wakes all that wait for a path: dials, readers and writers.
func (n *Network) pathsChanged() {
	close(n.changed)
	n.changed = make(chan struct{})
	for s := range n.streams {
		s.wakeAll()
	}
}
