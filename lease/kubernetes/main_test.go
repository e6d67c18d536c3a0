package kubernetes_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"github.com/serf-sbr/serf-sbr/internal/kubefake"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

const (
	testNamespace = "team-a"
	testName      = "payments-sbr"
	waitFor       = 10 * time.Second
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		if err := readAsChild(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func certificatePEM(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

func testConfig() kubernetes.Config {
	cfg := kubernetes.DefaultConfig()
	cfg.Namespace, cfg.Name = testNamespace, testName
	cfg.RequestTimeout = 20 * time.Second // for a machine under load; the tests about time set their own
	return cfg
}

func newStore(t *testing.T, f *kubefake.API) *kubernetes.Store {
	return newStoreWith(t, f, testConfig())
}

func newStoreWith(t *testing.T, f *kubefake.API, cfg kubernetes.Config) *kubernetes.Store {
	s, err := kubernetes.NewForConfig(f.RESTConfig(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// record has all fields, and times that survive the microseconds of the API.
func record(holder string, token uint64) lease.Record {
	began := time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)
	return lease.Record{
		Holder: holder, Token: token, Nonce: holder + "-" + strconv.FormatUint(token, 10), TTL: 1500 * time.Millisecond,
		Acquired: began, Renewed: began.Add(time.Second),
		Verdict: &sbr.Verdict{Token: token, Survivors: []sbr.ID{"a", "b"}, Down: []sbr.ID{"c"}, DecidedBy: sbr.ID(holder), Reason: "majority"},
	}
}

func mustWrite(t *testing.T, s lease.Store, r lease.Record, prev lease.Version) lease.Snapshot {
	t.Helper()
	version, err := s.Write(t.Context(), r, prev)
	require.NoError(t, err)
	return lease.Snapshot{Record: r, Version: version}
}

// hurried is a pace that retries quickly.
var hurried = lease.Pace{Retry: 5 * time.Millisecond, RetryMax: 20 * time.Millisecond, Poll: 20 * time.Millisecond, Beside: time.Hour}

// watching follows a store until the test ends and returns what that brings.
func watching(t *testing.T, s *kubernetes.Store) <-chan lease.Snapshot {
	seen := make(chan lease.Snapshot, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- lease.Follow(ctx, s, hurried, nil, func(snapshot lease.Snapshot) { seen <- snapshot }) }()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
	return seen
}

func next(t *testing.T, seen <-chan lease.Snapshot) lease.Snapshot {
	t.Helper()
	select {
	case snapshot := <-seen:
		return snapshot
	case <-time.After(waitFor):
		require.FailNow(t, "the watch brought nothing")
		return lease.Snapshot{}
	}
}

func nothing(t *testing.T, seen <-chan lease.Snapshot, during time.Duration) {
	t.Helper()
	select {
	case snapshot := <-seen:
		require.FailNow(t, "unexpected", "%+v", snapshot)
	case <-time.After(during):
	}
}

type config = rest.Config

type object = kubefake.Object

// newPlainServer returns an https address of a server that speaks plain HTTP.
func newPlainServer(t *testing.T) string {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	return "https" + strings.TrimPrefix(server.URL, "http")
}

func contextFor(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

// newForeignCA returns an authority that has signed nothing.
func newForeignCA(t *testing.T) []byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "foreign"}, IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

// The same suite runs against a real API server, for each API, in the module of the test servers.
func TestConformance(t *testing.T) {
	leasetest.Run(t, func(t *testing.T) leasetest.Harness {
		f := kubefake.New(t)
		return leasetest.Harness{
			Open:      func(testing.TB, string) lease.Store { return newStore(t, f) },
			Delete:    func(testing.TB) { f.Remove(testName) },
			Interrupt: func(testing.TB) { f.DropStreams(); f.CloseClientConnections() },
		}
	})
}
