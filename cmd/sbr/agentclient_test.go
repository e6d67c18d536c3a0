package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/config"
)

// The certificate that a configuration names is trusted, also where an unknown authority has signed it.
func TestStatus_TrustsTheCertificateOfTheConfiguration(t *testing.T) {
	authority := certificate(t, nil)
	own := certificate(t, &authority)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"member": "n1", "state": "up"}`)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{own}}
	server.StartTLS()
	defer server.Close()
	dir := t.TempDir()
	for name, c := range map[string]tls.Certificate{"own.pem": own, "other.pem": certificate(t, &authority)} {
		block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), block, 0o600))
	}
	for name, status := range map[string]int{"own.pem": 0, "other.pem": exitInternal} {
		config := filepath.Join(dir, "sbr.yaml")
		text := "system: s\nhttp: {listen: '" + server.Listener.Addr().String() + "', tls-cert-file: " +
			filepath.Join(dir, name) + ", tls-key-file: k}\n"
		require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
		var errOut strings.Builder
		require.Equal(t, status, run([]string{"status", "-f", config},
			streams{in: strings.NewReader(""), out: io.Discard, err: &errOut}), errOut.String())
		if status != 0 {
			require.Contains(t, errOut.String(), "an authority that this machine does not know")
		}
	}
}

// certificate makes one for 127.0.0.1, signed by an authority, or without one for an authority.
func certificate(t *testing.T, by *tls.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(t, err)
	c := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: serial.String()},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: by == nil,
	}
	signer, signerKey := c, any(key)
	if by != nil {
		signer, err = x509.ParseCertificate(by.Certificate[0])
		require.NoError(t, err)
		signerKey = by.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, c, signer, key.Public(), signerKey)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// An agent that listens on every address of its machine is asked on this one.
func TestStatus_WhereAnAgentListens(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:7380": "http://127.0.0.1:7380", ":7380": "http://127.0.0.1:7380", "0.0.0.0:7380": "http://127.0.0.1:7380",
		"[::]:7380": "http://[::1]:7380", "[fe80::1%eth0]:7380": "http://[fe80::1%25eth0]:7380", "n1.example.com:80": "http://n1.example.com:80",
	} {
		text, err := listenURL(&config.HTTP{Listen: listen})
		require.NoError(t, err)
		base, err := baseURL(text)
		require.NoError(t, err, listen)
		require.Equal(t, want, base)
	}
	_, err := listenURL(&config.HTTP{Listen: "7380"})
	require.ErrorContains(t, err, "missing port in address")
}

// waitagent FILE PATH TEXT waits until an agent, whose address the file holds, answers with the text at the
// path.
func waitagent(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 || neg {
		ts.Fatalf("usage: waitagent file path text")
	}
	url := "http://" + strings.TrimSpace(ts.ReadFile(args[0])) + args[1]
	var last string
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		resp, err := http.Get(url)
		if err != nil {
			last = err.Error()
			continue
		}
		text, err := io.ReadAll(resp.Body)
		ts.Check(err)
		_ = resp.Body.Close() // it was read to its end
		if last = string(text); strings.Contains(last, args[2]) {
			return
		}
	}
	ts.Fatalf("%s does not say %q, but %s", url, args[2], last)
}
