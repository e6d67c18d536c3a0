package kubetest

import (
	"errors"
	"fmt"

	"github.com/serf-sbr/serf-sbr/test/servers"
)

// onFreshPorts calls start again, so that it picks new ports, when it lost the race for one.
func onFreshPorts(start func() error) error {
	var err error
	for range servers.StartTries {
		err = start()
		var ended *exitError
		if !errors.As(err, &ended) || !ended.addressInUse() {
			return err
		}
	}
	return fmt.Errorf("kubetest: lost the race for a port %d times: %w", servers.StartTries, err)
}
