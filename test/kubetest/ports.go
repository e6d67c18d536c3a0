package kubetest

import (
	"errors"
	"fmt"
)

// Ports are taken from below the ephemeral range: while a killed server is away, an outgoing connection of anybody could take an
// ephemeral port for its own end, and the server could not come back.
const (
	firstPort = 20000
	portCount = 10000
	portTries = 100
)

const startTries = 5

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
