package kubernetes_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/serf-sbr/serf-sbr/internal/kubefake"
	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Credentials are client-go's business. These tests show that what it offers arrives: each lets a kubeconfig,
// or a pod's surroundings, reach an API server.

// kubeconfigFor writes a kubeconfig with one cluster, user and context, all called "one", after change has
// had its way.
func kubeconfigFor(t *testing.T, f *kubefake.API, change func(*clientcmdapi.Config)) string {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["one"] = &clientcmdapi.Cluster{Server: f.URL, CertificateAuthorityData: certificatePEM(f.Certificate())}
	c.AuthInfos["one"] = &clientcmdapi.AuthInfo{Token: "token-one"}
	c.Contexts["one"] = &clientcmdapi.Context{Cluster: "one", AuthInfo: "one", Namespace: testNamespace}
	c.CurrentContext = "one"
	if change != nil {
		change(c)
	}
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, clientcmd.WriteToFile(*c, path))
	return path
}

func openContext(t *testing.T, kubeconfig, name string) (*kubernetes.Store, error) {
	t.Helper()
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	cfg := testConfig()
	cfg.Kubeconfig, cfg.Context, cfg.Namespace = kubeconfig, name, ""
	s, err := kubernetes.New(cfg)
	if err == nil {
		t.Cleanup(func() { require.NoError(t, s.Close()) })
	}
	return s, err
}

// In a pod, too, a kubeconfig that is named counts for more than the service account.
func TestCredentials_ANamedKubeconfigComesFirst(t *testing.T) {
	f := kubefake.New(t)
	h := listen(f)
	path := kubeconfigFor(t, f, nil)
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	cfg := testConfig()
	cfg.Kubeconfig = path
	s, err := kubernetes.New(cfg)
	require.NoError(t, err)
	defer s.Close()
	read(t, s)
	require.Equal(t, "Bearer token-one", h.authorization())
}

// listen makes f remember what the last request carried.
func listen(f *kubefake.API) *heard {
	h := &heard{}
	f.With(func() { f.Hook = h.hook })
	return h
}

func TestCredentials_TheContextChoosesClusterAndUser(t *testing.T) {
	one, two := kubefake.New(t), kubefake.New(t)
	h1, h2 := listen(one), listen(two)
	path := kubeconfigFor(t, one, func(c *clientcmdapi.Config) {
		c.Clusters["two"] = &clientcmdapi.Cluster{Server: two.URL, CertificateAuthorityData: certificatePEM(two.Certificate())}
		c.AuthInfos["two"] = &clientcmdapi.AuthInfo{Token: "token-two"}
		c.Contexts["two"] = &clientcmdapi.Context{Cluster: "two", AuthInfo: "two", Namespace: testNamespace}
	})
	current, err := openContext(t, path, "")
	require.NoError(t, err)
	read(t, current)
	require.Equal(t, "Bearer token-one", h1.authorization())
	require.Empty(t, two.Made())
	chosen, err := openContext(t, path, "two")
	require.NoError(t, err)
	read(t, chosen)
	require.Equal(t, "Bearer token-two", h2.authorization())
	require.Len(t, one.Made(), 1)

	_, err = openContext(t, path, "three")
	require.ErrorContains(t, err, `"three"`)
	require.NotContains(t, err.Error(), "\n")
}

func TestCredentials_ExecPlugin(t *testing.T) {
	f := kubefake.New(t)
	h := listen(f)
	path := kubeconfigFor(t, f, func(c *clientcmdapi.Config) {
		c.AuthInfos["one"] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode, Command: "sh",
			Args: []string{"-c", `echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "made up"}}'`},
		}}
	})
	s, err := openContext(t, path, "")
	require.NoError(t, err)
	read(t, s)
	require.Equal(t, "Bearer made up", h.authorization())
}

// bouncer answers 401 to every token but one.
type bouncer struct {
	mu      sync.Mutex
	token   string
	refused int
}

func (b *bouncer) hook(w http.ResponseWriter, r *http.Request) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.Header.Get("Authorization") == "Bearer "+b.token {
		return false
	}
	b.refused++
	code, body := kubefake.Failure(401, "Unauthorized", "", "", "Unauthorized")
	kubefake.WriteJSON(w, code, body)
	return true
}

func (b *bouncer) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refused
}

func (b *bouncer) change(token string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.token = token
}

func newBounced(t *testing.T) (b *bouncer, s *kubernetes.Store, tokenFile string) {
	f := kubefake.New(t)
	b = &bouncer{token: "good"}
	f.With(func() { f.Hook = b.hook })
	tokenFile = filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(tokenFile, []byte("stale"), 0o600))
	c := f.RESTConfig()
	c.BearerToken, c.BearerTokenFile = "", tokenFile
	return b, open(t, c), tokenFile
}

// A token that has run out is renewed by the kubelet any moment: nothing is decided by a 401.
func TestCredentials_A401IsRetriedUntilTheTokenIsThere(t *testing.T) {
	b, s, file := newBounced(t)
	settings := lease.DefaultSettings()
	settings.OperationTimeout = 30 * time.Second
	l, err := lease.New(s, "a", settings, lease.Options{})
	require.NoError(t, err)
	defer l.Close()
	done := make(chan linear.Answer, 1)
	go func() { done <- linear.AnswerOf(l.Acquire(t.Context(), lease.Proposal{})) }()
	require.Eventually(t, func() bool { return b.count() >= 3 }, waitFor, time.Millisecond)
	require.Empty(t, done)
	require.NoError(t, os.WriteFile(file, []byte("good"), 0o600))
	out := <-done
	require.Equal(t, sbr.Granted, out.Kind, "%v", out)
}

// A holder goes on through it as long as nobody else may take over, and renews as soon as the new token is
// there.
func TestCredentials_A401DoesNotTakeAHeldLease(t *testing.T) {
	b, s, file := newBounced(t)
	require.NoError(t, os.WriteFile(file, []byte("good"), 0o600))
	clock := leasetest.NewClock()
	l, err := lease.New(s, "a", lease.DefaultSettings(), lease.Options{Clock: clock})
	require.NoError(t, err)
	defer l.Close()
	grant, err := l.Acquire(t.Context(), lease.Proposal{})
	require.NoError(t, err)
	before, err := s.Read(t.Context())
	require.NoError(t, err)
	until := func(what string, done func() bool) {
		require.Eventually(t, func() bool {
			clock.Advance(100 * time.Millisecond)
			return done()
		}, waitFor, 5*time.Millisecond, what)
	}
	b.change("rotated")
	until("heartbeats are refused", func() bool { return b.count() >= 3 })
	require.True(t, l.Check())
	require.NoError(t, os.WriteFile(file, []byte("rotated"), 0o600))
	until("a heartbeat arrives", func() bool {
		now, err := s.Read(t.Context())
		return err == nil && now.Record.Renewed.After(before.Record.Renewed)
	})
	require.True(t, l.Check())
	require.NoError(t, grant.Err())
}

// tunnel is an HTTP proxy that leads every CONNECT to f, whatever name it asks for.
type tunnel struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func newTunnel(t *testing.T, f *kubefake.API) *tunnel {
	p := &tunnel{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked = append(p.asked, r.Method+" "+r.Host)
		p.mu.Unlock()
		there, err := net.Dial("tcp", f.Listener.Addr().String())
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer there.Close()
		here, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer here.Close()
		_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = io.Copy(there, here)
			there.Close()
		}()
		_, _ = io.Copy(here, there)
		here.Close()
		<-done
	}))
	t.Cleanup(func() {
		f.CloseClientConnections()
		p.Close()
	})
	return p
}

func (p *tunnel) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...)
}

// publicName is a name that the emulation's certificate is made out to, and that no proxy rule excludes, as
// it does for loopback.
const publicName = "example.com:6443"

func TestCredentials_ProxyOfTheKubeconfig(t *testing.T) {
	f := kubefake.New(t)
	p := newTunnel(t, f)
	s, err := openContext(t, kubeconfigFor(t, f, func(c *clientcmdapi.Config) {
		c.Clusters["one"].Server, c.Clusters["one"].ProxyURL = "https://"+publicName, p.URL
	}), "")
	require.NoError(t, err)
	mustWrite(t, s, record("a", 1), "")
	require.Equal(t, []string{"CONNECT " + publicName}, p.requests())
}

// The variables are read once in a process, hence the child.
func TestCredentials_ProxyOfTheEnvironment(t *testing.T) {
	f := kubefake.New(t)
	p := newTunnel(t, f)
	path := kubeconfigFor(t, f, func(c *clientcmdapi.Config) { c.Clusters["one"].Server = "https://" + publicName })
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), childVariable+"=read", "KUBECONFIG="+path, "HTTPS_PROXY="+p.URL, "NO_PROXY=", "KUBERNETES_SERVICE_HOST=")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, []string{"CONNECT " + publicName}, p.requests())
}

// childVariable makes a process of this test binary read the lease.
const childVariable = "LEASE_KUBERNETES_TEST_CHILD"

// readAsChild reads the lease with nothing but what the process finds around itself.
func readAsChild() error {
	cfg := kubernetes.DefaultConfig()
	cfg.Name, cfg.RequestTimeout = testName, 20*time.Second
	s, err := kubernetes.New(cfg)
	if err != nil {
		return err
	}
	_, err = s.Read(context.Background())
	return err
}
