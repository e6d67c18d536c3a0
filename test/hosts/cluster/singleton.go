//go:build linux

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/serf-sbr/serf-sbr/test/hosts/lab"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
	"github.com/serf-sbr/serf-sbr/test/process"
)

// Guard is what lets a program run.
type Guard string

// The guards: the cluster alone, the cluster and a lease, a lease alone.
const (
	ByMembers Guard = "members"
	ByBoth    Guard = "members and lease"
	ByLease   Guard = "lease alone"
)

// Singleton is a program that `sbr run` runs in one place: there is one of these on every host.
type Singleton struct {
	// Name of the singleton.
	Name string
	// Guard lets it run.
	Guard Guard
	// Command is the program on a host.
	Command func(host string) []string
	// Env is added to its environment.
	Env []string
	// StopTimeout is how long it may take to end; zero: 2 s.
	StopTimeout time.Duration
	// Settings are keys of the block singleton.
	Settings map[string]any
}

// runAgain is when `sbr run` is started again, as by a service manager.
const runAgain = 300 * time.Millisecond

func (s *Singleton) lease() string { return System + "-singleton-" + s.Name }

// block is the block singleton of sbr.yaml; nil: there is none.
func (s *Singleton) block(kind string) map[string]any {
	if s == nil || s.Guard == ByLease {
		return nil
	}
	block := maps.Clone(s.Settings)
	if block == nil {
		block = make(map[string]any)
	}
	if s.Guard == ByBoth {
		block["use-lease"] = kind
	}
	return block
}

// leases are the leases that the members need beside the resolver's.
func (s *Singleton) leases() []string {
	if s == nil || s.Guard == ByMembers {
		return nil
	}
	return []string{s.lease()}
}

// allow gives the members' account further leases beside the resolver's.
func (c *Cluster) allow(ctx context.Context, api *kubetest.Cluster, leases []string) error {
	if len(leases) == 0 {
		return nil
	}
	path := "/apis/rbac.authorization.k8s.io/v1/namespaces/" + c.namespace + "/roles/sbr-" + leaseName
	rules := []map[string]any{{
		"apiGroups": []string{"coordination.k8s.io"}, "resources": []string{"leases"}, "resourceNames": append([]string{leaseName}, leases...),
		"verbs": []string{"get", "watch", "update", "patch", "create"},
	}}
	code, said, err := api.Do(ctx, http.MethodPatch, path, map[string]any{"rules": rules})
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("%d %s", code, said)
	}
	if err != nil {
		return fmt.Errorf("cluster: rights on %v: %w", leases, err)
	}
	return nil
}

// startRun starts `sbr run` on a host.
func (c *Cluster) startRun(h *lab.Host) (*lab.Supervisor, error) {
	s := c.options.Singleton
	// Locks are files, and the hosts share the disk.
	dir := h.File("tmp")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	args := []string{"run", "--stop-timeout", cmp.Or(s.StopTimeout, 2*time.Second).String(),
		"--log-format", "json"}
	if s.Guard == ByLease {
		args = append(args, "--lease", c.store.Kind+":"+s.lease(), "--config", h.File(configFile))
	} else {
		args = append(args, "--singleton", s.Name)
	}
	return h.Supervise(process.Command{
		Name: "run", Program: c.options.SBR, Args: slices.Concat(args, []string{"--"}, s.Command(h.Name())),
		Env: slices.Concat(os.Environ(), []string{"TMPDIR=" + dir}, s.Env),
	}, runAgain)
}

// Crash ends everything on the member's host at once, as a power failure. Nothing is started again before
// Restore.
func (c *Cluster) Crash(ctx context.Context, name string) error {
	m := c.Member(name)
	m.SetRestart(false)
	if m.Run != nil {
		m.Run.SetRestart(false)
	}
	return c.lab.Crash(ctx, name)
}

// Restore starts again what was ended by Crash, and goes on to do so.
func (c *Cluster) Restore(name string) {
	m := c.Member(name)
	m.SetRestart(true)
	if m.Run != nil {
		m.Run.SetRestart(true)
	}
}

// Resign ends `sbr run` on the member's host in good order, so that the program runs elsewhere; it is started
// again. It returns when it has ended.
func (m *Member) Resign(ctx context.Context) (process.Exit, error) {
	p := m.Run.Process()
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return process.Exit{}, err
	}
	return p.Wait(ctx)
}

// WaitAttached returns when each agent has a program for the singleton, so that it can run on every host.
func (c *Cluster) WaitAttached(ctx context.Context) error {
	return await(ctx, func() error {
		for _, m := range c.Members() {
			if err := m.attached(ctx, c.options.Singleton.Name); err != nil {
				return err
			}
		}
		return nil
	})
}

func (m *Member) attached(ctx context.Context, name string) error {
	var list []struct {
		Name     string `json:"name"`
		Attached bool   `json:"attached"`
	}
	if err := m.ask(ctx, "singletons", &list); err != nil {
		return err
	}
	for _, x := range list {
		if x.Name == name && x.Attached {
			return nil
		}
	}
	return fmt.Errorf("cluster: no program is attached to %s", m.Host.Name())
}
