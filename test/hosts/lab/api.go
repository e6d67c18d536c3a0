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
)

// Store is the host of the lease store; nil if there is none.
func (l *Lab) Store() *Host {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.host(l.store)
}

// StartAPI adds a host with a real etcd and kube-apiserver, and returns when it is ready: some 3 seconds, and minutes the first time, when
// they are built; progress tells of that. A lab has one. The cluster's methods kill, pause and start each of the two; its kubeconfigs work
// on all hosts. It ends with the lab.
func (l *Lab) StartAPI(ctx context.Context, name string, progress io.Writer) (*kubetest.Cluster, error) {
	h, err := l.AddHost(ctx, name)
	if err != nil {
		return nil, err
	}
	cluster, err := kubetest.Start(ctx, kubetest.Options{
		Progress: progress,
		Dir:      h.File("kube"),
		Place:    &kubetest.Place{Address: h.address.String(), Thread: h.thread, Dial: h.DialContext},
	})
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.store = name
	l.closers = append(l.closers, func() error {
		// Logs may be kept; what etcd has stored is large, and tells nobody anything.
		stored, err := filepath.Glob(filepath.Join(h.File("kube"), "snapshot-*"))
		errs := []error{err, cluster.Stop()}
		for _, dir := range append(stored, filepath.Join(h.File("kube"), "etcd")) {
			errs = append(errs, os.RemoveAll(dir))
		}
		return errors.Join(errs...)
	})
	return cluster, nil
}
