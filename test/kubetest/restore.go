package kubetest

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// SnapshotEtcd copies what etcd has stored, as a snapshot of its volume does, and returns the folder of the
// copy, which is removed with the cluster's. etcd stands still meanwhile: some tens of milliseconds.
func (c *Cluster) SnapshotEtcd() (folder string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.etcd.Alive() && !c.etcd.Paused() {
		ctx, cancel := context.WithTimeout(context.Background(), pauseTimeout)
		defer cancel()
		if err := c.etcd.Pause(ctx); err != nil {
			return "", fmt.Errorf("kubetest: snapshot of etcd: %w", err)
		}
		defer func() { err = errors.Join(err, c.etcd.Resume()) }()
	}
	if folder, err = os.MkdirTemp(c.dir.path, "snapshot-"); err == nil {
		err = os.CopyFS(folder, os.DirFS(c.etcdData()))
	}
	if err != nil {
		return "", fmt.Errorf("kubetest: snapshot of etcd: %w", err)
	}
	return folder, nil
}

// RestoreEtcd replaces what etcd has stored by a snapshot, and returns when the API server, if there is one,
// is ready: both are killed and started again, as one restores a control plane. The snapshot can be restored
// again.
func (c *Cluster) RestoreEtcd(ctx context.Context, folder string) error {
	if !c.alone {
		c.KillAPIServer()
	}
	c.KillEtcd()
	err := os.RemoveAll(c.etcdData())
	if err == nil {
		err = os.CopyFS(c.etcdData(), os.DirFS(folder))
	}
	if err != nil {
		return fmt.Errorf("kubetest: etcd from the snapshot %s: %w", folder, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := c.StartEtcd(ctx); err != nil || c.alone {
		return err
	}
	return c.StartAPIServer(ctx)
}
