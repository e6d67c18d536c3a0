package kubetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below the ephemeral range: while a killed server is away, an outgoing connection of anybody could take an
// ephemeral port for its own end, and the server could not come back.
const (
	firstPort = 20000
	portCount = 10000
	portTries = 100
)

const startTries = 5

// freeAddress finds a loopback address nobody listens on. Somebody may still take it before its user does: see onFreshPorts.
func freeAddress() (string, error) {
	for range portTries {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+rand.IntN(portCount)))
		listener, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		return address, listener.Close()
	}
	return "", fmt.Errorf("kubetest: no free port among %d tried in %d-%d; end what listens there", portTries, firstPort, firstPort+portCount-1)
}

// onFreshPorts calls start again, so that it picks new ports, when it lost the race for one.
func onFreshPorts(start func() error) error {
	var err error
	for range startTries {
		err = start()
		var ended *exitError
		if !errors.As(err, &ended) || !ended.addressInUse() {
			return err
		}
	}
	return fmt.Errorf("kubetest: lost the race for a port %d times: %w", startTries, err)
}
