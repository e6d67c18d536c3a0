package kubetest

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/process"
	"github.com/serf-sbr/serf-sbr/test/buildcache"
	"github.com/serf-sbr/serf-sbr/test/servers"
)

// startTimeout is a bound for a machine under load; alone it takes 3 seconds.
const startTimeout = 90 * time.Second

// Binaries are the paths of the two programs.
type Binaries struct{ Etcd, APIServer string }

// Options are what a caller of Start may choose. The zero value is right for nearly all callers.
type Options struct {
	// Binaries are the programs to run. Zero: those of the cache, built first if missing.
	Binaries Binaries
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
	bin     Binaries
	alone   bool // etcd without an API server
	place   servers.Place
	thread  *process.Thread // of its own; nil: the place has one
	admin   *client
	kube    string
	serving servingFiles
	api     string
	store   string
	peer    string

	mu        sync.Mutex
	stopped   bool
	etcd      *server
	apiServer *server
}

// Start runs a new cluster and returns when it is ready. ctx bounds the start, not the life of the cluster:
// that ends with Stop, or with the process.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	bin, err := opts.programs(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := openFolder(opts.Dir)
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, bin: bin, alone: opts.EtcdAlone}
	if opts.Place == nil {
		c.place = servers.Loopback()
		c.thread = c.place.Thread
	} else {
		c.place = *opts.Place
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errors.New("gave up after "+startTimeout.String()))
	defer cancel()
	if err := c.start(ctx); err != nil {
		// The error names a log: it must still be there to be read.
		c.dir.kept = true
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (o Options) programs(ctx context.Context) (b Binaries, err error) {
	if o.Binaries != b {
		return o.Binaries, nil
	}
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	if b.Etcd, err = buildcache.Etcd.Ensure(ctx, o.Progress); err != nil || o.EtcdAlone {
		return b, err
	}
	b.APIServer, err = buildcache.APIServer.Ensure(ctx, o.Progress)
	return b, err
}

func (c *Cluster) start(ctx context.Context) error {
	if err := onFreshPorts(func() error { return c.startEtcd(ctx) }); err != nil {
		return err
	}
	if c.alone {
		return nil
	}
	if err := c.writeServingFiles(); err != nil {
		return err
	}
	return onFreshPorts(func() error {
		address, err := c.place.FreeAddress()
		if err != nil {
			return err
		}
		if err := c.setAPIAddress(address); err != nil {
			return err
		}
		return c.StartAPIServer(ctx)
	})
}

// setAPIAddress also makes what points there: the administrator's client and kubeconfig.
func (c *Cluster) setAPIAddress(address string) error {
	admin := access{server: "https://" + address, authority: c.serving.identity.certPEM, namespace: "default", token: c.serving.adminToken}
	var err error
	if c.admin, err = newClient(admin, c.place.Dial); err != nil {
		return err
	}
	c.api = address
	c.kube, err = admin.write(c.dir.path)
	return err
}

// URL is the address of the API server. It stays the same over a restart.
func (c *Cluster) URL() string { return "https://" + c.api }

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
	c.apiServer.kill()
	c.etcd.kill()
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
	return c.etcd.alive() && c.etcd.Paused()
}
