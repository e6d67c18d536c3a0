//go:build linux

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"syscall"
)

const (
	configFile = "sbr.yaml"
	newFile    = "new.yaml"
)

// PrepareMove writes a new.yaml for each member, with the lease in another store. The chain goes on there.
func (c *Cluster) PrepareMove(ctx context.Context, to *Store) error {
	k, err := to.open(ctx, c)
	if err != nil {
		return err
	}
	c.chain.follow(k)
	for _, m := range c.Members() {
		if _, err := c.writeConfig(m.Host, newFile, to.Kind, k); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store, c.keep = to, k
	return nil
}

// Move moves the lease on the member's host, as an operator does: again until it has moved.
func (c *Cluster) Move(ctx context.Context, on *Member) error {
	old, fresh := on.Host.File(configFile), on.Host.File(newFile)
	if said, err := on.Host.Output(ctx, c.options.SBR, "lease", "doctor", "-f", fresh); err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	return await(ctx, func() error {
		said, err := on.Host.Output(ctx, c.options.SBR,
			"lease", "move", "-f", old, "--to", fresh, "--yes", "-o", "json")
		if err != nil {
			return fmt.Errorf("%w: %s", err, said)
		}
		var answer struct{ Outcome string }
		if err = json.Unmarshal([]byte(said), &answer); err == nil && answer.Outcome != "moved" {
			err = fmt.Errorf("cluster: moving the lease: %s", said)
		}
		return err
	})
}

// TakeNew gives a member its new.yaml, and restarts it. A member that has just ended starts with it anyway.
func (c *Cluster) TakeNew(ctx context.Context, m *Member) error {
	if err := os.Rename(m.Host.File(newFile), m.Host.File(configFile)); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	old := m.SBR.Process()
	if err := ignoreEnded(old.Signal(syscall.SIGTERM)); err != nil {
		return err
	}
	return await(ctx, func() error {
		if m.SBR.Process() == old {
			return fmt.Errorf("cluster: sbr on %s has not been started again", m.Host.Name())
		}
		return m.SBR.Err()
	})
}
