package kubetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"

	"github.com/serf-sbr/serf-sbr/internal/process"
)

// Place is where the two programs run when that is not the loopback of this process, for instance a network namespace.
type Place struct {
	// Address is the IP address that they listen at.
	Address string
	// Thread starts them, and finds out which ports are free: it is in that place. Stop leaves it alone.
	Thread *process.Thread
	// Dial connects to that place.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// loopback is where clusters run that have been told nothing else.
func loopback() Place {
	return Place{Address: "127.0.0.1", Thread: process.NewThread(), Dial: new(net.Dialer).DialContext}
}

// freeAddress finds an address where nobody listens. Somebody may still take it before its user does: see onFreshPorts.
func (p Place) freeAddress() (string, error) {
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
	return "", fmt.Errorf("kubetest: no free port among %d tried in %d-%d; end what listens there", portTries, firstPort, firstPort+portCount-1)
}
