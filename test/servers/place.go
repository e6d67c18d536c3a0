package servers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"

	"github.com/serf-sbr/serf-sbr/test/process"
)

// Place is where servers run, for instance a network namespace.
type Place struct {
	// Address is the IP address that they listen at.
	Address string
	// Thread starts them, and finds out which ports are free: it is in that place. Servers leave it alone.
	Thread *process.Thread
	// Dial connects to that place.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Loopback is the place on loopback, with a thread of its own, which is the caller's to close.
func Loopback() Place {
	return Place{Address: "127.0.0.1", Thread: process.NewThread(), Dial: new(net.Dialer).DialContext}
}

// Ports are taken from below the ephemeral range: while a killed server is away, an outgoing connection of
// anybody could take an ephemeral port for its own end, and the server could not come back.
const (
	firstPort = 20000
	portCount = 10000
	portTries = 100
)

// StartTries is how often a server is started whose port somebody else took.
const StartTries = 5

// FreeAddress finds an address where nobody listens. Somebody may still take it before its user does: see
// StartTries.
func (p Place) FreeAddress() (string, error) {
	for range portTries {
		address := net.JoinHostPort(p.Address, strconv.Itoa(firstPort+rand.IntN(portCount)))
		var listener net.Listener
		var err error
		p.Thread.Do(func() { listener, err = net.Listen("tcp", address) })
		if err != nil {
			continue
		}
		return address, listener.Close()
	}
	return "", fmt.Errorf("servers: no free port among %d tried in %d-%d; end what listens there",
		portTries, firstPort, firstPort+portCount-1)
}
