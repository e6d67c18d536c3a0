//go:build linux

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
	"github.com/serf-sbr/serf-sbr/test/process"
)

// What operators and platforms do to a cluster, to its store and to its rights.

// Account is what the members ask Kubernetes as: its rights and its token can be taken away. Of another store
// it is nil.
func (c *Cluster) Account() *kubetest.Account { return c.account }

// tidyUp is what an operator does on a host: each member that the stock agent there calls failed is removed.
// $1 may be -prune: its name is, too. Where no member is failed the list is an empty line.
const tidyUp = `"$0" members -status=failed | while read -r name rest; do
	[ -z "$name" ] || "$0" force-leave $1 "$name"
done`

// ForceLeave lets an operator tidy up on the member's host. Where the agent does not run no member can be
// removed.
func (c *Cluster) ForceLeave(ctx context.Context, m *Member, prune bool) error {
	args := []string{"-c", tidyUp, c.options.Serf}
	if prune {
		args = append(args, "-prune")
	}
	if said, err := m.Host.Output(ctx, "/bin/sh", args...); err != nil {
		return fmt.Errorf("cluster: force-leave on %s: %w: %s", m.Host.Name(), err, said)
	}
	return nil
}

// StartCron lets it happen on the member's host once a second. It ends with the lab, or by Kill.
func (c *Cluster) StartCron(m *Member) (*process.Process, error) {
	args := []string{"-c", "while sleep 1; do\n" + tidyUp + "\ndone", c.options.Serf}
	return m.Host.Start(process.Command{Name: "cron", Program: "/bin/sh", Args: args})
}

// downTimeout bounds one `sbr down`: with the settings of the tests an agent has answered by then.
const downTimeout = 20 * time.Second

// Down lets an operator ask the agent of a member to down another member: `sbr down`. A refusal, or no
// answer, is no error.
func (c *Cluster) Down(ctx context.Context, by *Member, name string) error {
	said, err := by.Host.Output(ctx, c.options.SBR, "down", c.options.nodeOn(name), "--yes",
		"--reason", "an operator of the tests says so", "--url", pageURL, "--timeout", downTimeout.String())
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 || ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("cluster: %w: %s", err, said)
	}
	return nil
}

// stateFolder is what is lost with the disk.
func (m *Member) stateFolder() string { return m.Host.File("state") }

// LoseState removes what `sbr agent` has stored on the host. It must not run.
func (m *Member) LoseState() error {
	if m.Running() {
		return fmt.Errorf("cluster: sbr on %s runs", m.Host.Name())
	}
	if err := os.RemoveAll(m.stateFolder()); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// Record is the lease as it is; the zero record: there is none.
func (c *Cluster) Record(ctx context.Context) (lease.Record, error) {
	now, err := c.keep.record.Read(ctx)
	return now.Record, err
}

// DeleteRecord is `kubectl delete lease`. There may be none.
func (c *Cluster) DeleteRecord(ctx context.Context) error {
	c.chain.forget()
	if err := c.keep.remove(ctx); err != nil {
		return fmt.Errorf("cluster: the lease: %w", err)
	}
	return nil
}

// replaceTries bounds how often members may write between the reading and the replacing.
const replaceTries = 20

// ReplaceRecord puts an earlier state in the place of the lease, as `kubectl replace` does; where there is
// none it is made anew. Without an earlier state the lease is deleted.
func (c *Cluster) ReplaceRecord(ctx context.Context, earlier lease.Record) error {
	if earlier.Token == 0 {
		return c.DeleteRecord(ctx)
	}
	c.chain.forget()
	for range replaceTries {
		now, err := c.keep.record.Read(ctx)
		if err != nil {
			return err
		}
		if _, err = c.keep.record.Write(ctx, earlier, now.Version); !errors.Is(err, lease.ErrConflict) {
			return err
		}
	}
	return errors.New("cluster: the lease: somebody writes to it again and again")
}

// RestoreStore lets etcd go back to a snapshot, the API server with it, and returns when they answer again.
func (c *Cluster) RestoreStore(ctx context.Context, snapshot string) error {
	c.chain.forget()
	return c.store.API.RestoreEtcd(ctx, snapshot)
}

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
