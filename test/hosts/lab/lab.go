//go:build linux

package lab

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
)

// subnet is where the hosts of every lab live: labs do not see each other, nor the machine's own networks.
// The order of addresses is that in which hosts were added; they are those of the nodes in the simulator.
var subnet = netip.MustParsePrefix("10.0.0.0/24")

// Options say what a lab has from the start.
type Options struct {
	// Hosts are the names of the hosts. AddHost adds more.
	Hosts []string
	// Dir keeps the logs, also after Close. Empty: a temporary folder that Close removes, unless Keep was
	// called.
	Dir string
}

// Lab is a set of hosts on one bridge. Its methods may be called from several goroutines.
type Lab struct {
	name     string
	dir      string
	keep     bool
	watchman *watchman
	bridge   string // its namespace

	mu      sync.Mutex
	hosts   []*Host
	store   string // the host of the lease store; empty: none
	faults  faults
	closed  bool
	closers []func() error
}

// ErrNeeds is returned by Check and New where there can be no lab.
var ErrNeeds = errors.New("lab: hosts are network namespaces: that needs Linux, root, and the packages iproute2 and nftables")

// Check reports whether a lab can be made here: an [ErrNeeds] that says what is missing, or nil.
func Check() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w; this is user %d", ErrNeeds, os.Geteuid())
	}
	for _, tool := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%w; there is no %s: apt-get install iproute2 nftables", ErrNeeds, tool)
		}
	}
	return nil
}

// New makes a lab. The caller closes it. When New fails, nothing is left.
func New(ctx context.Context, o Options) (*Lab, error) {
	if err := Check(); err != nil {
		return nil, err
	}
	l := &Lab{name: labName(strings.ToLower(rand.Text()[:6])), dir: o.Dir, keep: o.Dir != "",
		faults: newFaults()}
	if err := l.make(ctx, o.Hosts); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Lab) make(ctx context.Context, hosts []string) error {
	var err error
	if l.keep {
		err = os.MkdirAll(l.dir, 0o755)
	} else {
		l.dir, err = os.MkdirTemp("", l.name+"-")
	}
	if err != nil {
		return fmt.Errorf("lab: folder: %w", err)
	}
	if l.watchman, err = startWatchman(l.name, l.dir); err != nil {
		return err
	}
	l.bridge = l.namespace(bridgeName)
	if err := addNamespace(ctx, l.bridge); err != nil {
		return err
	}
	if err := ip(ctx, l.bridge, "link add br0 type bridge", "link set br0 up", "link set lo up"); err != nil {
		return err
	}
	for _, name := range hosts {
		if _, err := l.AddHost(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) namespace(host string) string { return l.name + "-" + host }

// AddHost adds a host. All links of it work, whatever is cut between others.
func (l *Lab) AddHost(ctx context.Context, name string) (*Host, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, errors.New("lab: it is closed")
	case l.host(name) != nil:
		return nil, fmt.Errorf("lab: there is a host %s already", name)
	}
	h, err := newHost(ctx, l, name, len(l.hosts)+1)
	if err != nil {
		return nil, err
	}
	l.hosts = append(l.hosts, h)
	return h, nil
}

// Host returns a host by name; nil if there is none.
func (l *Lab) Host(name string) *Host {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.host(name)
}

func (l *Lab) host(name string) *Host {
	i := slices.IndexFunc(l.hosts, func(h *Host) bool { return h.name == name })
	if i < 0 {
		return nil
	}
	return l.hosts[i]
}

func (l *Lab) namesOf(hosts []*Host) (names []string) {
	for _, h := range hosts {
		names = append(names, h.name)
	}
	return names
}

// Dir is the folder with the logs.
func (l *Lab) Dir() string { return l.dir }

// Name is what the namespaces of this lab begin with.
func (l *Lab) Name() string { return l.name }

// Keep makes Close leave the folder with the logs, to be read.
func (l *Lab) Keep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep = true
}

// Close ends all processes and removes all hosts. Only the first call does anything.
func (l *Lab) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	hosts, closers := l.hosts, l.closers
	l.mu.Unlock()
	var errs []error
	for _, closer := range slices.Backward(closers) {
		errs = append(errs, closer())
	}
	for _, h := range hosts {
		h.close()
	}
	errs = append(errs, removeNamespaces(context.Background(), l.name))
	if l.watchman != nil {
		l.watchman.dismiss()
	}
	if !l.keep && l.dir != "" {
		errs = append(errs, os.RemoveAll(l.dir))
	}
	return errors.Join(errs...)
}
