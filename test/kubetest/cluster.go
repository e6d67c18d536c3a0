package kubetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/serf-sbr/serf-sbr/test/buildcache"
	"github.com/serf-sbr/serf-sbr/test/process"
	"github.com/serf-sbr/serf-sbr/test/servers"
)

// startTimeout is a bound for a machine under load; alone it takes 3 seconds.
const startTimeout = 90 * time.Second

// Options are what a caller of Start may choose. The zero value is right for nearly all callers.
type Options struct {
	// Progress is where a build reports. Nil: standard error.
	Progress io.Writer
	// Dir keeps data, logs and kubeconfigs, also after Stop. Empty: a temporary folder that Stop removes.
	Dir string
	// Place is where the programs run. Nil: on loopback.
	Place *servers.Place
	// EtcdAlone leaves out the API server.
	EtcdAlone bool
}

// Cluster is a running etcd and kube-apiserver. Its methods may be called from several goroutines.
type Cluster struct {
	dir     *folder
	program struct{ etcd, apiServer string }
	alone   bool // etcd without an API server
	place   servers.Place
	thread  *process.Thread // of its own; nil: the place has one
	admin   *client
	kube    string
	serving servingFiles

	mu              sync.Mutex
	stopped         bool
	etcd, apiServer servers.Server
}

// Start runs a new cluster and returns when it is ready. ctx bounds the start, not the life of the cluster:
// that ends with Stop, or with the process.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	c := &Cluster{alone: opts.EtcdAlone}
	if err := c.build(ctx, opts.Progress); err != nil {
		return nil, err
	}
	var err error
	if c.dir, err = openFolder(opts.Dir); err != nil {
		return nil, err
	}
	if opts.Place == nil {
		c.place = servers.Loopback()
		c.thread = c.place.Thread
	} else {
		c.place = *opts.Place
	}
	c.etcd = servers.Server{Place: c.place, Command: c.etcdCommand, Ping: c.etcdHealthy}
	c.apiServer = servers.Server{Place: c.place, Command: c.apiServerCommand, Ping: c.apiServerReady}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout,
		errors.New("gave up after "+startTimeout.String()))
	defer cancel()
	if err := c.start(ctx); err != nil {
		// The error names a log: it must still be there to be read.
		c.dir.kept = true
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) build(ctx context.Context, progress io.Writer) (err error) {
	if progress == nil {
		progress = os.Stderr
	}
	if c.program.etcd, err = buildcache.Etcd.Ensure(ctx, progress); err != nil || c.alone {
		return err
	}
	c.program.apiServer, err = buildcache.APIServer.Ensure(ctx, progress)
	return err
}

func (c *Cluster) start(ctx context.Context) error {
	if err := c.etcd.StartSomewhere(ctx); err != nil || c.alone {
		return err
	}
	if err := c.writeServingFiles(); err != nil {
		return err
	}
	return c.apiServer.StartSomewhere(ctx)
}

// reachAt makes what points to the API server: the administrator's client and kubeconfig.
func (c *Cluster) reachAt(address string) error {
	if c.admin != nil && c.admin.access.server == "https://"+address {
		return nil
	}
	admin := access{server: "https://" + address, authority: c.serving.identity.certPEM, namespace: "default",
		token: c.serving.adminToken}
	var err error
	if c.admin, err = newClient(admin, c.place.Dial); err != nil {
		return err
	}
	c.kube, err = admin.write(c.dir.path)
	return err
}

// URL is the address of the API server. It stays the same over a restart.
func (c *Cluster) URL() string { return c.admin.access.server }

// AdminKubeconfig is the path of a kubeconfig that may do everything.
func (c *Cluster) AdminKubeconfig() string { return c.kube }

// Stop kills both programs and removes the temporary folder. Only the first call does anything.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil
	}
	c.stopped = true
	if c.admin != nil {
		c.admin.close()
	}
	c.apiServer.Kill()
	c.etcd.Kill()
	if c.thread != nil {
		c.thread.Close()
	}
	return c.dir.close()
}

// EtcdIsPaused reports whether etcd stands still: a test that measures a pause can see whether the pause was
// ended meanwhile.
func (c *Cluster) EtcdIsPaused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.etcd.Paused()
}

const (
	folderPrefix = "sbr-kubetest-"
	// leftoverAge leaves time to read the logs of a failed start.
	leftoverAge = time.Hour
)

// folder holds what a cluster writes. Its lock tells other test processes that it is in use.
type folder struct {
	path string
	kept bool
	lock *flock.Flock
}

func openFolder(path string) (*folder, error) {
	f := &folder{path: path, kept: path != ""}
	var err error
	if f.kept {
		err = os.MkdirAll(path, 0o755)
	} else {
		removeLeftovers(os.TempDir())
		f.path, err = os.MkdirTemp("", folderPrefix)
	}
	if err != nil {
		return nil, fmt.Errorf("kubetest: folder: %w", err)
	}
	f.lock = flock.New(f.file("lock"))
	locked, err := f.lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("kubetest: folder: %w", err)
	}
	if !locked {
		return nil, fmt.Errorf("kubetest: folder %s: another cluster uses it; give each its own Options.Dir", path)
	}
	return f, nil
}

func (f *folder) file(name string) string { return filepath.Join(f.path, name) }

func (f *folder) close() error {
	var err error
	if !f.kept {
		err = os.RemoveAll(f.path)
	}
	return errors.Join(err, f.lock.Close())
}

// removeLeftovers clears the folders of killed tests: etcd alone reserves 64 MB in each.
func removeLeftovers(parent string) {
	folders, _ := filepath.Glob(filepath.Join(parent, folderPrefix+"*"))
	for _, path := range folders {
		info, err := os.Stat(path)
		if err != nil || time.Since(info.ModTime()) < leftoverAge {
			continue
		}
		lock := flock.New(filepath.Join(path, "lock"))
		if locked, err := lock.TryLock(); err != nil || !locked {
			continue
		}
		_ = os.RemoveAll(path)
		_ = lock.Close()
	}
}
