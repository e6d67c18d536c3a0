package kubernetes_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
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
)

const (
	testNamespace = "team-a"
	testName      = "payments-sbr"
	waitFor       = 10 * time.Second
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

// What the tests of this package and those of the store over the other server have in common.
var (
	record         = kubefake.Record
	mustWrite      = kubefake.MustWrite
	requireUnknown = kubefake.RequireUnknown
	next           = kubefake.Next
	nothing        = kubefake.Nothing
)

func watching(t *testing.T, s *kubernetes.Store) <-chan lease.Snapshot {
	return kubefake.Watching(t, s, nil)
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
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "foreign"},
		IsCA: true, BasicConstraintsValid: true}
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
