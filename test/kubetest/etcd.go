package kubetest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"
)

func (c *Cluster) startEtcd(ctx context.Context) error {
	client, err := c.place.FreeAddress()
	if err != nil {
		return err
	}
	peer, err := c.place.FreeAddress()
	if err != nil {
		return err
	}
	c.store, c.peer = "http://"+client, "http://"+peer
	// A start that lost the race for a port may have written its other address.
	if err := os.RemoveAll(c.etcdData()); err != nil {
		return fmt.Errorf("kubetest: etcd: %w", err)
	}
	return c.StartEtcd(ctx)
}

// EtcdURL is the address of etcd. It stays the same over a restart.
func (c *Cluster) EtcdURL() string { return c.store }

func (c *Cluster) etcdData() string { return c.dir.file("etcd") }

// StartEtcd starts etcd after KillEtcd, with its data and at the same address, and returns when it is
// healthy.
func (c *Cluster) StartEtcd(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return errStopped
	}
	if c.etcd.alive() {
		return errors.New("kubetest: etcd is running; call KillEtcd first")
	}
	etcd, err := startServer(c.place.Thread, "etcd", c.dir.file("etcd.log"), c.bin.Etcd,
		"--data-dir="+c.etcdData(),
		"--listen-client-urls="+c.store, "--advertise-client-urls="+c.store,
		"--listen-peer-urls="+c.peer, "--initial-advertise-peer-urls="+c.peer, "--initial-cluster=default="+c.peer,
		"--unsafe-no-fsync",
		"--log-level=warn",
	)
	if err != nil {
		return err
	}
	c.etcd = etcd
	return etcd.await(ctx, c.etcdHealthy)
}

// KillEtcd kills etcd without a warning, as a crash would; what it has answered is not lost. Killing a dead
// one is fine.
func (c *Cluster) KillEtcd() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.etcd.kill()
}

func (c *Cluster) etcdHealthy(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.store+"/health", nil)
	if err != nil {
		return err
	}
	// A client of its own without keep-alive: it runs before any test and must leave no goroutine behind.
	once := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: c.place.Dial}, Timeout: 2 * time.Second}
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
func (c *Cluster) PauseEtcd() error { return c.pause(func() *server { return c.etcd }) }

// ContinueEtcd ends PauseEtcd.
func (c *Cluster) ContinueEtcd() error { return c.resume(func() *server { return c.etcd }) }

const pauseTimeout = 5 * time.Second

func (c *Cluster) pause(which func() *server) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(context.Background(), pauseTimeout, errors.New("gave up after "+pauseTimeout.String()))
	defer cancel()
	return which().pause(ctx)
}

func (c *Cluster) resume(which func() *server) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return which().resume()
}
