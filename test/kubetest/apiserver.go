package kubetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/serf-sbr/serf-sbr/test/process"
)

// servingFiles are what the API server reads at each start; they outlive it, so a restarted one is the same
// to its clients.
type servingFiles struct {
	identity   identity
	certFile   string
	keyFile    string
	tokenFile  string
	adminToken string
}

func (c *Cluster) writeServingFiles() error {
	id, err := newIdentity(c.place.Address)
	if err != nil {
		return err
	}
	c.serving = servingFiles{
		identity:   id,
		certFile:   c.dir.file("apiserver.crt"),
		keyFile:    c.dir.file("apiserver.key"),
		tokenFile:  c.dir.file("tokens.csv"),
		adminToken: rand.Text(),
	}
	// Columns: token, user, uid, groups.
	admin := c.serving.adminToken + `,admin,admin,"system:masters"` + "\n"
	for path, content := range map[string][]byte{
		c.serving.certFile:  id.certPEM,
		c.serving.keyFile:   id.keyPEM,
		c.serving.tokenFile: []byte(admin),
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("kubetest: kube-apiserver: %w", err)
		}
	}
	return nil
}

var errStopped = errors.New("kubetest: the cluster is stopped; Start a new one")

// StartAPIServer starts the API server after KillAPIServer, at the same address, and returns when it is
// ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return errStopped
	}
	if c.apiServer.Alive() {
		return errors.New("kubetest: kube-apiserver is running; call KillAPIServer first")
	}
	return c.apiServer.Start(ctx)
}

func (c *Cluster) apiServerCommand(address string) (process.Command, error) {
	if err := c.reachAt(address); err != nil {
		return process.Command{}, err
	}
	host, port, err := net.SplitHostPort(address)
	return process.Command{Name: "kube-apiserver", Program: c.program.apiServer,
		Log: c.dir.file("kube-apiserver.log"), Args: []string{
			"--etcd-servers=" + c.EtcdURL(),
			"--bind-address=" + host, "--secure-port=" + port,
			"--cert-dir=" + c.dir.path,
			"--tls-cert-file=" + c.serving.certFile, "--tls-private-key-file=" + c.serving.keyFile,
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + c.serving.keyFile, "--service-account-signing-key-file=" + c.serving.keyFile,
			"--authorization-mode=RBAC",
			"--token-auth-file=" + c.serving.tokenFile,
			"--disable-admission-plugins=ServiceAccount",
			// Without these it looks for a public address of the host, and there may be none.
			"--advertise-address=" + host, "--endpoint-reconciler-type=none",
			"--service-cluster-ip-range=10.0.0.0/24",
		}}, err
}

func (c *Cluster) apiServerReady(ctx context.Context) error {
	code, answer, err := c.admin.do(ctx, http.MethodGet, "/readyz", nil)
	if err != nil {
		return fmt.Errorf("not ready: %w", err)
	}
	if code != http.StatusOK {
		return unexpected(http.MethodGet, "/readyz", code, answer)
	}
	return nil
}

// WaitReady returns when the API server says it is ready, for example after ContinueEtcd.
func (c *Cluster) WaitReady(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.apiServer.Healthy(ctx)
}

// KillAPIServer kills the API server without a warning, as a crash would. Killing a dead one is fine.
func (c *Cluster) KillAPIServer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.apiServer.Kill()
	// Requests over the dead server's connections would be the first failures of the next one.
	c.admin.close()
}

// PauseAPIServer freezes the API server: connections stay open and silent, as behind a link that drops
// packets.
func (c *Cluster) PauseAPIServer() error { return c.pause(&c.apiServer) }

// ContinueAPIServer ends PauseAPIServer.
func (c *Cluster) ContinueAPIServer() error { return c.resume(&c.apiServer) }
