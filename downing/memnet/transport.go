package memnet

import (
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/hashicorp/memberlist"
)

// Transport is one run of one host. It serves as memberlist.Config.Transport for one memberlist or Serf
// instance, which shuts it down with itself. All methods are safe for concurrent use.
type Transport struct {
	net     *Network
	host    *host
	addr    netip.AddrPort
	packets chan *memberlist.Packet
	conns   chan net.Conn
	closed  bool // guarded by net.mu
}

var _ memberlist.NodeAwareTransport = (*Transport)(nil)

// Addr is where the transport listens, as "IP:port".
func (t *Transport) Addr() string { return t.addr.String() }

// FinalAdvertiseAddr returns the transport's own address, whatever was configured: the network carries
// nothing to any other.
func (t *Transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return t.addr.Addr().AsSlice(), int(t.addr.Port()), nil
}

// WriteTo sends a copy of b as one packet to addr ("IP:port"). It does not block. Only a malformed address
// and a transport that is shut down are errors; that a packet was lost is for the receiver to miss, as with
// UDP.
func (t *Transport) WriteTo(b []byte, addr string) (time.Time, error) {
	dst, err := netip.ParseAddrPort(addr)
	if err != nil {
		return time.Time{}, &net.OpError{Op: "write", Net: "udp", Err: err}
	}
	n := t.net
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	if t.closed {
		return time.Time{}, &net.OpError{Op: "write", Net: "udp", Source: t.udpAddr(), Err: net.ErrClosed}
	}
	d := &datagram{from: t.host, source: t.addr, dst: dst, buf: slices.Clone(b)}
	if t.host.frozen {
		hold(&t.host.heldOut, d)
	} else {
		n.transmit(d)
	}
	return now, nil
}

// WriteToAddress is [Transport.WriteTo]; a.Name is ignored.
func (t *Transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	return t.WriteTo(b, a.Addr)
}

// PacketCh delivers the packets that arrive. It is never closed.
func (t *Transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// StreamCh delivers the streams that others opened. It is never closed.
func (t *Transport) StreamCh() <-chan net.Conn { return t.conns }

// Shutdown ends the transport as a crash would: nothing is announced, its streams are closed at this end,
// its dials fail, and what a freeze had held is dropped. It is safe to call again. The name can then be
// started anew.
func (t *Transport) Shutdown() error {
	n := t.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	t.host.running = nil
	t.host.unfreeze()
	for s := range n.streams {
		for _, c := range s.ends {
			if c.owner == t {
				c.closeLocked()
			}
		}
	}
	n.pathsChanged()
	return nil
}

func (t *Transport) udpAddr() net.Addr { return net.UDPAddrFromAddrPort(t.addr) }

// datagram is a packet between WriteTo and PacketCh.
type datagram struct {
	from        *host
	source, dst netip.AddrPort
	buf         []byte
}

// hold queues d at a frozen host. The oldest stay, as in a socket's buffer.
func hold(queue *[]*datagram, d *datagram) {
	if len(*queue) < queueLen {
		*queue = append(*queue, d)
	}
}

// transmit puts d on the wire.
func (n *Network) transmit(d *datagram) {
	to := n.receiver(d)
	if to == nil || n.lost(d.from, to) {
		return
	}
	delay := n.delay(d.from, to)
	if delay == 0 {
		n.arrive(d)
		return
	}
	time.AfterFunc(delay, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.arrive(d)
	})
}

// receiver is the host that takes d, nil if none does. It is asked on departure and again on arrival, since a
// cut also stops what is under way.
func (n *Network) receiver(d *datagram) *host {
	to := n.listening(d.dst)
	if to == nil || n.isCut(d.from, to) {
		return nil
	}
	return to
}

// arrive takes d off the wire.
func (n *Network) arrive(d *datagram) {
	to := n.receiver(d)
	if to == nil {
		return
	}
	if to.frozen {
		hold(&to.heldIn, d)
		return
	}
	packet := &memberlist.Packet{Buf: d.buf, From: net.UDPAddrFromAddrPort(d.source), Timestamp: time.Now()}
	select {
	case to.running.packets <- packet:
	default:
	}
}
