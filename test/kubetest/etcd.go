package kubetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/serf-sbr/serf-sbr/test/process"
	"github.com/serf-sbr/serf-sbr/test/servers"
)

// EtcdURL is the address of etcd. It stays the same over a restart.
func (c *Cluster) EtcdURL() string { return "http://" + c.etcd.Address() }

func (c *Cluster) etcdData() string { return c.dir.file("etcd") }

// StartEtcd starts etcd after KillEtcd, with its data and at the same address, and returns when it is
// healthy.
func (c *Cluster) StartEtcd(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return errStopped
	}
	if c.etcd.Alive() {
		return errors.New("kubetest: etcd is running; call KillEtcd first")
	}
	return c.etcd.Start(ctx)
}

// etcdCommand listens for other members, of which there are none, wherever there is a port.
func (c *Cluster) etcdCommand(address string) (process.Command, error) {
	return process.Command{Name: "etcd", Program: c.program.etcd, Log: c.dir.file("etcd.log"), Args: []string{
		"--data-dir=" + c.etcdData(),
		"--listen-client-urls=http://" + address, "--advertise-client-urls=http://" + address,
		"--listen-peer-urls=http://" + net.JoinHostPort(c.place.Address, "0"),
		"--unsafe-no-fsync",
		"--log-level=warn",
	}}, nil
}

// KillEtcd kills etcd without a warning, as a crash would; what it has answered is not lost. Killing a dead
// one is fine.
func (c *Cluster) KillEtcd() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.etcd.Kill()
}

func (c *Cluster) etcdHealthy(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.EtcdURL()+"/health", nil)
	if err != nil {
		return err
	}
	// A client of its own without keep-alive: it runs before any test and must leave no goroutine behind.
	once := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: c.place.Dial},
		Timeout: 2 * time.Second}
	response, err := once.Do(request)
	if err != nil {
		return fmt.Errorf("not ready: %w", err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: health says %s", response.Status)
	}
	return nil
}

// PauseEtcd freezes etcd: the API server stays up and answers nothing that needs the store.
func (c *Cluster) PauseEtcd() error { return c.pause(&c.etcd) }

// ContinueEtcd ends PauseEtcd.
func (c *Cluster) ContinueEtcd() error { return c.resume(&c.etcd) }

const pauseTimeout = 5 * time.Second

func (c *Cluster) pause(s *servers.Server) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(context.Background(), pauseTimeout,
		errors.New("gave up after "+pauseTimeout.String()))
	defer cancel()
	return s.Pause(ctx)
}

func (c *Cluster) resume(s *servers.Server) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return s.Resume()
}

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
