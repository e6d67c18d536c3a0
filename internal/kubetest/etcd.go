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
	client, err := freeAddress()
	if err != nil {
		return err
	}
	peer, err := freeAddress()
	if err != nil {
		return err
	}
	c.store = "http://" + client
	data := c.dir.file("etcd")
	// A start that lost the race for a port may have written its other address.
	if err := os.RemoveAll(data); err != nil {
		return fmt.Errorf("kubetest: etcd: %w", err)
	}
	etcd, err := startProcess(c.spawner, "etcd", c.dir.file("etcd.log"), c.bin.Etcd,
		"--data-dir="+data,
		"--listen-client-urls="+c.store, "--advertise-client-urls="+c.store,
		"--listen-peer-urls=http://"+peer, "--initial-advertise-peer-urls=http://"+peer, "--initial-cluster=default=http://"+peer,
		"--unsafe-no-fsync",
		"--log-level=warn",
	)
	if err != nil {
		return err
	}
	c.etcd = etcd
	return etcd.await(ctx, c.etcdHealthy)
}

func (c *Cluster) etcdHealthy(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.store+"/health", nil)
	if err != nil {
		return err
	}
	// A client of its own without keep-alive: it runs before any test and must leave no goroutine behind.
	once := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Second}
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
func (c *Cluster) PauseEtcd() error { return c.pause(func() *process { return c.etcd }) }

// ContinueEtcd ends PauseEtcd.
func (c *Cluster) ContinueEtcd() error { return c.resume(func() *process { return c.etcd }) }

const pauseTimeout = 5 * time.Second

func (c *Cluster) pause(which func() *process) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(context.Background(), pauseTimeout, errors.New("gave up after "+pauseTimeout.String()))
	defer cancel()
	return which().pause(ctx)
}

func (c *Cluster) resume(which func() *process) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return which().resume()
}
