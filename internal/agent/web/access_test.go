package web

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

func TestToken(t *testing.T) {
	noLeaks(t)
	path := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(path, []byte("s3cret\n"), 0o600))
	_, url := served(t, Options{Source: whole(3), TokenFile: path, Metrics: http.NotFoundHandler()})
	for _, tc := range []struct {
		name   string
		header []string
		want   int
	}{
		{"without", nil, 401},
		{"bearer", []string{"Authorization", "Bearer s3cret"}, 200},
		{"bearer in lower case, with blanks", []string{"Authorization", "bearer   s3cret "}, 200},
		{"any user with the token as password", []string{"Authorization", basic("ops", "s3cret")}, 200},
		{"nobody with the token as password", []string{"Authorization", basic("", "s3cret")}, 200},
		{"the token as user", []string{"Authorization", basic("s3cret", "")}, 401},
		{"a wrong one", []string{"Authorization", "Bearer s3cre"}, 401},
		{"a longer one", []string{"Authorization", "Bearer s3cret0"}, 401},
		{"an empty one", []string{"Authorization", "Bearer "}, 401},
		{"no scheme", []string{"Authorization", "s3cret"}, 401},
		{"another scheme", []string{"Authorization", "Digest s3cret"}, 401},
		{"broken Basic", []string{"Authorization", "Basic !!!"}, 401},
		{"a wrong and a right one", []string{"Authorization", "Bearer x", "Authorization", "Bearer s3cret"}, 401},
		{"not in the address", []string{"X-Token", "s3cret"}, 401},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, path := range []string{"/", "/status", "/nowhere", "/metrics"} {
				status, body, h := get(t, "GET", url+path, tc.header...)
				if status == 404 {
					status = 200 // it was let in
				}
				require.Equal(t, tc.want, status, path)
				require.NotContains(t, body, "s3cret")
				if status == 401 {
					require.Len(t, h.Values("WWW-Authenticate"), 2)
					require.NotContains(t, body, "payments")
				}
			}
		})
	}
	for _, path := range []string{"/healthz/live", "/healthz/ready"} {
		status, _, _ := get(t, "GET", url+path)
		require.Equal(t, 200, status, "%s needs no token", path)
	}
	for _, path := range []string{"/healthz/live/", "/healthz", "/healthz/live/../../status"} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", url, http.NoBody)
		require.NoError(t, err)
		r.URL.Opaque = path
		a, err := http.DefaultTransport.RoundTrip(r)
		require.NoError(t, err)
		defer a.Body.Close()
		require.Equal(t, 401, a.StatusCode, path)
	}
}

func TestToken_IsReadAnew(t *testing.T) {
	noLeaks(t)
	path := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	var log strings.Builder
	_, url := served(t, Options{Source: whole(3), TokenFile: path,
		Logger: slog.New(slog.NewTextHandler(&log, nil))})
	status := func(secret string) int {
		code, _, _ := get(t, "GET", url+"/status", "Authorization", "Bearer "+secret)
		return code
	}
	require.Equal(t, 200, status("old"))
	require.NoError(t, os.WriteFile(path, []byte("new"), 0o600))
	require.Equal(t, 401, status("old"))
	require.Equal(t, 200, status("new"))
	require.NoError(t, os.Remove(path))
	require.Equal(t, 503, status("new"), "what cannot be read lets nobody in")
	require.Equal(t, 503, status(""))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.Equal(t, 503, status(""), "nor does an empty token")
	require.NoError(t, os.WriteFile(path, []byte("third"), 0o600))
	require.Equal(t, 200, status("third"))
	require.Equal(t, 1, strings.Count(log.String(), "nobody is let in"), "it is logged once")
}

// pair writes a certificate for 127.0.0.1 and its key.
func pair(t *testing.T, dir, name string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		0o600))
	return certFile, keyFile
}

func TestTLS(t *testing.T) {
	noLeaks(t)
	cert, key := pair(t, t.TempDir(), "one")
	s, url := served(t, Options{Source: whole(3), TLSCert: cert, TLSKey: key})
	pool := x509.NewCertPool()
	pem, err := os.ReadFile(cert)
	require.NoError(t, err)
	require.True(t, pool.AppendCertsFromPEM(pem))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool},
		ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	a, err := client.Get(url + "/status")
	require.NoError(t, err)
	defer a.Body.Close()
	require.Equal(t, 200, a.StatusCode)
	require.Equal(t, 2, a.ProtoMajor, "several feeds of one browser share a connection")
	feed, err := client.Get(url + "/events")
	require.NoError(t, err)
	defer feed.Body.Close()
	first := make([]byte, 64)
	_, err = io.ReadAtLeast(feed.Body, first, len(first))
	require.NoError(t, err)
	require.Contains(t, string(first), "event: state")
	_, err = tls.Dial("tcp", s.Addr().String(), &tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS11})
	require.ErrorContains(t, err, "version")
	plain, _, _ := get(t, "GET", strings.Replace(url, "https", "http", 1)+"/status")
	require.Equal(t, 400, plain)
}

// A renewed certificate is served without a restart; a certificate that does not fit its key is not.
func TestTLS_Renewal(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := pair(t, dir, "one")
	var log strings.Builder
	c := &certificate{certFile: certFile, keyFile: keyFile, log: slog.New(slog.NewTextHandler(&log, nil))}
	require.NoError(t, c.load())
	name := func() string {
		leaf, err := x509.ParseCertificate(c.get().Certificate[0])
		require.NoError(t, err)
		return leaf.Subject.CommonName
	}
	require.Equal(t, "one", name())
	other, _ := pair(t, t.TempDir(), "other")
	alien, err := os.ReadFile(other)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(certFile, alien, 0o600))
	require.Equal(t, "one", name(), "a certificate without its key")
	require.NoError(t, os.Remove(keyFile))
	require.Equal(t, "one", name(), "no key")
	require.Equal(t, 1, strings.Count(log.String(), "serving the old one"), "it is logged once")
	require.NotContains(t, log.String(), "was renewed")
	pair(t, dir, "two")
	require.Equal(t, "two", name())
	require.Contains(t, log.String(), "was renewed")
}

// No header makes a token out of nothing, and what was accepted was in the header.
func FuzzCredential(f *testing.F) {
	for _, h := range []string{"", "Bearer x", "bearer  x ", "Basic " + base64.StdEncoding.EncodeToString(
		[]byte("a:b:c")), "Basic", "Bearer", "Basic ====", "Digest x", "\x00"} {
		f.Add(h)
	}
	f.Fuzz(func(t *testing.T, header string) {
		secret, ok := credential([]string{header})
		require.Equal(t, ok, secret != "")
		if !ok {
			return
		}
		raw := strings.Contains(header, secret)
		_, encoded, _ := strings.Cut(header, " ")
		decoded, err := base64.StdEncoding.DecodeString(encoded)
		require.True(t, raw || err == nil && strings.HasSuffix(string(decoded), ":"+secret) || err == nil &&
			strings.Contains(string(decoded), ":"+secret))
		_, twice := credential([]string{header, header})
		require.False(t, twice)
	})
}
