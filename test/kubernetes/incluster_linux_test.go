package kubernetes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/kubefake"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// The service account's folder has a fixed name, which cannot be written to outside of a pod. So these tests
// run a child in a mount namespace of its own, where it can: what it sees there is what a container sees.

const (
	accountFolder   = "/var/run/secrets/kubernetes.io/serviceaccount"
	accountVariable = "SERF_SBR_TEST_ACCOUNT"
	// cannotMount is the exit status of a child that may not have what a container has.
	cannotMount = 77
)

// account is the content of the folder; an empty file is left out.
type account struct{ Token, CA, Namespace string }

func readInCluster() {
	var files account
	err := json.Unmarshal([]byte(os.Getenv(accountVariable)), &files)
	if err == nil {
		err = files.mount()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(cannotMount)
	}
	readAsChild()
}

// readAsChild reads the lease with nothing but what the process finds around itself.
func readAsChild() {
	cfg := kubernetes.DefaultConfig()
	cfg.Name, cfg.RequestTimeout = testName, 20*time.Second
	s, err := kubernetes.New(cfg)
	if err == nil {
		var got lease.Snapshot
		if got, err = s.Read(context.Background()); err == nil {
			holder := "is free"
			if got.Record.Holder != "" {
				holder = "is held by " + got.Record.Holder
			}
			fmt.Println(s, holder)
			return
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func (a account) mount() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	run, err := filepath.EvalSymlinks("/var/run")
	if err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", run, "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount on %s: %w", run, err)
	}
	if err := os.MkdirAll(accountFolder, 0o700); err != nil {
		return err
	}
	for name, text := range map[string]string{"token": a.Token, "ca.crt": a.CA, "namespace": a.Namespace} {
		if text != "" {
			err = errors.Join(err, os.WriteFile(filepath.Join(accountFolder, name), []byte(text), 0o600))
		}
	}
	return err
}

// inPod runs the child as in a pod with these files, and returns what it says. Where the kernel forbids that
// to users, as some hardened machines do, the test is skipped, and says so.
func inPod(t *testing.T, files account, environment ...string) string {
	t.Helper()
	raw, err := json.Marshal(files)
	require.NoError(t, err)
	environment = append(environment, accountVariable+"="+string(raw), "HTTPS_PROXY=", "https_proxy=",
		"KUBECONFIG=/nowhere")
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), environment...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	var status *exec.ExitError
	if errors.As(err, &status) && status.ExitCode() == cannotMount || errors.Is(err, syscall.EPERM) ||
		errors.Is(err, syscall.ENOSPC) {
		t.Skipf("no mount namespace of one's own on this machine: %v %s", err, out)
	}
	require.NoError(t, err, "%s", out)
	return string(out)
}

func serviceEnvironment(t *testing.T, server string) []string {
	t.Helper()
	u, err := url.Parse(server)
	require.NoError(t, err)
	host, port, err := net.SplitHostPort(u.Host)
	require.NoError(t, err)
	return []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port}
}

// Token, authority and namespace come from the folder, the address from the environment: against a real API
// server.
func TestCredentials_InCluster(t *testing.T) {
	w := newRealWorld(t, kubetest.Shared(t))
	mustWrite(t, w.store(t), record("a", 1), "")
	c := restConfigOf(t, w.kubeconfig)
	out := inPod(t, account{c.BearerToken, string(c.CAData), w.namespace + "\n"},
		serviceEnvironment(t, c.Host)...)
	require.Equal(t, w.namespace+"/"+testName+" is held by a\n", out)
}

// A folder without a namespace means "default".
func TestCredentials_InClusterWithoutNamespace(t *testing.T) {
	f := kubefake.New(t)
	f.Namespaces = []string{"default"}
	var sent atomic.Value
	f.Hook = func(_ http.ResponseWriter, r *http.Request) bool {
		sent.Store(r.Header.Get("Authorization"))
		return false
	}
	c := f.RESTConfig()
	out := inPod(t, account{Token: "of the pod\n", CA: string(c.CAData)}, serviceEnvironment(t, f.URL)...)
	require.True(t, strings.HasPrefix(out, "default/"+testName+" is free"), out)
	require.Equal(t, "Bearer of the pod", sent.Load())
}
