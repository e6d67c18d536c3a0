//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/serf-sbr/serf-sbr/test/kubetest"
	"github.com/serf-sbr/serf-sbr/test/servers"
)

// Store is the host of the lease store; nil if there is none.
func (l *Lab) Store() *Host {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.host(l.store)
}

// StartAPI adds a host with a real etcd and kube-apiserver, and returns when it is ready: some 3 seconds, and
// minutes the first time, when they are built; progress tells of that. The cluster's methods kill, pause and
// start each of the two; its kubeconfigs work on all hosts. It ends with the lab.
func (l *Lab) StartAPI(ctx context.Context, name string, progress io.Writer) (*kubetest.Cluster, error) {
	return l.startKube(ctx, name, kubetest.Options{Progress: progress})
}

// StartEtcd does so without the API server.
func (l *Lab) StartEtcd(ctx context.Context, name string, progress io.Writer) (*kubetest.Cluster, error) {
	return l.startKube(ctx, name, kubetest.Options{Progress: progress, EtcdAlone: true})
}

func (l *Lab) startKube(
	ctx context.Context, name string, o kubetest.Options,
) (cluster *kubetest.Cluster, err error) {
	err = l.StartStore(ctx, name, func(h *Host, place servers.Place) (func() error, error) {
		o.Dir, o.Place = h.File("kube"), &place
		var err error
		if cluster, err = kubetest.Start(ctx, o); err != nil {
			return nil, err
		}
		return func() error {
			// Logs may be kept; what etcd has stored is large, and tells nobody anything.
			stored, err := filepath.Glob(filepath.Join(o.Dir, "snapshot-*"))
			errs := []error{err, cluster.Stop()}
			for _, dir := range append(stored, filepath.Join(o.Dir, "etcd")) {
				errs = append(errs, os.RemoveAll(dir))
			}
			return errors.Join(errs...)
		}, nil
	})
	return cluster, err
}

// StartStore starts the server of a lease store on a host, which is added if there is none of that name. A
// lab has one such host. What start returns ends the server; it is called when the lab is closed.
func (l *Lab) StartStore(
	ctx context.Context, name string, start func(h *Host, place servers.Place) (end func() error, err error),
) error {
	h := l.Host(name)
	if h == nil {
		var err error
		if h, err = l.AddHost(ctx, name); err != nil {
			return err
		}
	}
	end, err := start(h, servers.Place{Address: h.address.String(), Thread: h.thread, Dial: h.DialContext})
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.store = name
	l.closers = append(l.closers, end)
	return nil
}
