package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/lease"
	_ "github.com/serf-sbr/serf-sbr/lease/etcd" // the values of lease-implementation
	_ "github.com/serf-sbr/serf-sbr/lease/file"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	_ "github.com/serf-sbr/serf-sbr/lease/mongodb"
)

const leaseHelp = `Lease looks at the one lease that decides a partition, and repairs it.

The lease is named by a configuration (-f sbr.yaml), or by itself, as an argument or with --lease:
  NAME, kubernetes:NAME   a Lease object, found as kubectl would find it
  file:PATH               a file on this machine
  etcd:NAME, postgres:NAME, mongodb:NAME
                          in the store that the configuration's block of that name describes
Flags override the configuration.`

// leaseAPIs are the values of --api.
var leaseAPIs = []string{string(kubernetes.Native), string(kubernetes.Akka), string(kubernetes.Pekko)}

// leaseFlags say which lease it is.
type leaseFlags struct {
	file, lease                         string
	kubeconfig, context, namespace, api string
}

func addLease(c *cobra.Command) *leaseFlags {
	var l leaseFlags
	flags := c.Flags()
	c.Use += " [LEASE]"
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 1 && l.lease != "" {
			return badInput{fmt.Errorf("the lease is named twice: %s and --lease %s", args[0], l.lease)}
		}
		if len(args) == 1 {
			l.lease = args[0]
		}
		return cobra.MaximumNArgs(1)(c, args)
	}
	addConfig(flags, &l.file, " that names the lease")
	flags.StringVar(&l.lease, "lease", "",
		"the lease itself: kubernetes:NAME, file:PATH, or etcd, postgres or mongodb:NAME")
	l.addPlace(flags)
	flags.Var(word{&l.api, leaseAPIs}, "api", "whose Lease object it is (default native)")
	return &l
}

// addPlace adds the flags that say where Kubernetes keeps it.
func (l *leaseFlags) addPlace(flags *pflag.FlagSet) {
	flags.StringVar(&l.kubeconfig, "kubeconfig", "",
		"path of a kubeconfig (default: the pod's service account, else what kubectl uses)")
	flags.StringVar(&l.context, "context", "", "context of the kubeconfig (default: its current one)")
	flags.StringVarP(&l.namespace, "namespace", "n", "",
		"namespace of the lease (default: the pod's, or the context's)")
}

// target is a lease that flags or a configuration name.
type target struct {
	implementation string
	spec           lease.Spec
	settings       lease.Settings
	config         *config.File

	store lease.Store // once it is open
	where string      // it is, in words
}

// target reads the configuration and lays the flags over it.
func (l *leaseFlags) target() (*target, error) {
	t, err := l.named()
	if err == nil {
		err = l.checkForeign(t.implementation)
	}
	if err != nil {
		return nil, badInput{err}
	}
	k := &t.config.Lease.Kubernetes
	k.Kubeconfig, k.Context = cmp.Or(l.kubeconfig, k.Kubeconfig), cmp.Or(l.context, k.Context)
	k.Namespace, k.API = cmp.Or(l.namespace, k.Namespace), cmp.Or(l.api, k.API)
	t.settings, t.spec.Decode = t.config.Lease.Settings(t.implementation), t.config.LeaseBlock(t.implementation)
	t.spec.Settings = t.settings
	return t, nil
}

// checkForeign refuses the flags of Kubernetes for another store.
func (l *leaseFlags) checkForeign(store string) error {
	if store == config.ImplementationKubernetes {
		return nil
	}
	for _, flag := range [][2]string{{"kubeconfig", l.kubeconfig}, {"context", l.context},
		{"namespace", l.namespace}, {"api", l.api}} {
		if flag[1] != "" {
			return fmt.Errorf("--%s is not for the store %s", flag[0], store)
		}
	}
	return nil
}

// named is the lease that LEASE names, or where the configuration keeps the lease of its resolver.
func (l *leaseFlags) named() (t *target, err error) {
	t = &target{config: new(config.Default())}
	if l.file != "" {
		if t.config, err = config.Load(l.file); err != nil {
			return nil, err
		}
		t.spec.System, t.spec.Name = t.config.System, t.config.LeaseName()
	}
	if l.lease == "" {
		if l.file == "" {
			return nil, errors.New("which lease? give -f sbr.yaml, or NAME (in Kubernetes), or file:PATH")
		}
		if t.implementation, err = t.config.LeaseStore(); err == nil && t.implementation == "" {
			err = fmt.Errorf("system %s decides without a lease: name one, as NAME (in Kubernetes) or file:PATH",
				t.config.System)
		}
		return t, err
	}
	implementation, place, ok := strings.Cut(l.lease, ":")
	if !ok {
		implementation, place = config.ImplementationKubernetes, l.lease
	}
	if place == "" {
		return nil, fmt.Errorf("lease %q: it must be NAME, KIND:NAME or file:PATH", l.lease)
	}
	if err := strictyaml.OneOf(implementation, lease.Implementations()); err != nil {
		return nil, fmt.Errorf("lease %q: %w", l.lease, err)
	}
	t.implementation, t.spec.Name = implementation, place
	if implementation == config.ImplementationFile {
		t.config.Lease.File.Path, t.spec.Name = place, cmp.Or(t.config.System, "lease")
	}
	return t, nil
}

// open opens the store. The error is the caller's: a place that does not exist, a kubeconfig that cannot be
// read.
func (t *target) open(ctx context.Context) (err error) {
	if t.store, err = lease.Open(ctx, t.implementation, t.spec); err != nil {
		return badInput{err}
	}
	t.where = t.implementation + ":" + t.spec.Name
	if s, ok := t.store.(fmt.Stringer); ok {
		t.where = t.implementation + ":" + s.String()
	}
	return nil
}

func (t *target) close() {
	if c, ok := t.store.(io.Closer); ok {
		_ = c.Close() // everything was written before
	}
}

// with opens the store for the time of f.
func (l *leaseFlags) with(ctx context.Context, f func(*target) error) error {
	t, err := l.target()
	if err != nil {
		return err
	}
	if err := t.open(ctx); err != nil {
		return err
	}
	defer t.close()
	return f(t)
}

// owned opens a lease under an owner's name. It is closed, not released, at the end. Without a name it is
// user@host, so that a release finds what an acquire in another process has acquired. A heartbeatTimeout
// other than zero replaces the configuration's.
func (l *leaseFlags) owned(ctx context.Context, owner string, heartbeatTimeout time.Duration,
	f func(*target, *lease.Lease) error) error {
	return l.with(ctx, func(t *target) error {
		if heartbeatTimeout != 0 {
			t.settings.HeartbeatTimeout = heartbeatTimeout
			t.settings.HeartbeatInterval = min(t.settings.Interval(), heartbeatTimeout/3) // nobody sends any
		}
		own, err := lease.New(t.store, cmp.Or(owner, userName()+"@"+hostName()), t.settings, lease.Options{})
		if err != nil {
			return badInput{err}
		}
		defer own.Close()
		return f(t, own)
	})
}

// addOwner gives a command the flag --owner.
func addOwner(c *cobra.Command) *string {
	return c.Flags().String("owner", "",
		"under whose name; the same name is the same owner (default: USER@HOST)")
}

func userName() string {
	u, err := user.Current()
	if err != nil {
		return "nobody"
	}
	return u.Username
}

func hostName() string {
	host, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return host
}

// read reads the record within the lease's operation timeout.
func (t *target) read(ctx context.Context) (lease.Snapshot, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, t.settings.OperationTimeout,
		fmt.Errorf("no answer within %v", t.settings.OperationTimeout))
	defer cancel()
	s, err := t.store.Read(ctx)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return s, err
}

// ago is a moment for people: how long before now it was.
func ago(at, now time.Time) string {
	d := now.Sub(at).Round(time.Second)
	if d < 0 {
		return (-d).String() + " ahead of this machine's clock"
	}
	return d.String() + " ago"
}
