package web

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
)

// maxToken bounds what is read of a token file. Longer ones are refused.
const maxToken = 4 << 10

// token is the secret that a request must bring.
type token struct {
	path string
	log  *slog.Logger
	// unreadable says that the last attempt failed, so that it is logged once.
	unreadable atomic.Bool
}

// ReadToken reads a token from its file.
func ReadToken(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	all, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	secret := strings.TrimSpace(string(all))
	if err == nil && (secret == "" || len(all) > maxToken ||
		strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' })) {
		err = fmt.Errorf("%s: it must hold one token: one line of letters, digits and signs without blanks, at most %d bytes", path, maxToken)
	}
	return secret, err
}

// read reads the token anew: it may have been replaced, and the file is a few bytes.
func (t *token) read() (string, error) {
	secret, err := ReadToken(t.path)
	if err != nil {
		err = fmt.Errorf("http: token: %w: correct http.token-file", err)
	}
	return secret, err
}

// admits reports whether a request brings the token or needs none. It answers the others.
func (t *token) admits(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path == pathLive || r.URL.Path == pathReady {
		return true
	}
	want, err := t.read()
	if t.unreadable.Swap(err != nil) != (err != nil) && err != nil {
		t.log.Error("sbr: nobody is let in to the status page while the token cannot be read", "error", err)
	}
	if err != nil {
		http.Error(w, "the token cannot be read, so nobody is let in: see the log of the agent",
			http.StatusServiceUnavailable)
		return false
	}
	given, ok := credential(r.Header.Values("Authorization"))
	if !ok || !equal(given, want) {
		// A browser cannot send a bearer token by itself; it asks its user for a password.
		w.Header().Add("WWW-Authenticate", `Bearer realm="sbr"`)
		w.Header().Add("WWW-Authenticate",
			`Basic realm="sbr: any name, and the token as password", charset="UTF-8"`)
		http.Error(w, "a token is needed: Authorization: Bearer TOKEN, or any user with the token as password",
			http.StatusUnauthorized)
		return false
	}
	return true
}

// credential is the token in the Authorization header: that of Bearer, or the password of Basic. Two headers
// are none.
func credential(headers []string) (secret string, ok bool) {
	if len(headers) != 1 {
		return "", false
	}
	if scheme, rest, found := strings.Cut(headers[0], " "); found && strings.EqualFold(scheme, "Bearer") {
		secret = strings.TrimSpace(rest)
		return secret, secret != ""
	}
	r := http.Request{Header: http.Header{"Authorization": headers}}
	_, secret, ok = r.BasicAuth()
	return secret, ok && secret != ""
}

// equal takes the same time wherever the two differ, and however long they are.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// certificate is read for each connection, so that a renewal needs no restart. It stays the last good one if
// the files do not fit.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu     sync.Mutex
	pair   tls.Certificate
	broken bool // the last attempt failed, which is logged once
}

func (c *certificate) config() *tls.Config {
	get := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.get(), nil }
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: get}
}

// load reads the files.
func (c *certificate) load() error {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("http tls: %s and %s: %w: correct http.tls-cert-file and http.tls-key-file: a PEM certificate and the key "+
			"that belongs to it", c.certFile, c.keyFile, err)
	}
	if c.pair.Certificate != nil && !bytes.Equal(c.pair.Certificate[0], pair.Certificate[0]) {
		c.log.Info("sbr: the TLS certificate was renewed", "file", c.certFile)
	}
	c.pair = pair
	return nil
}

func (c *certificate) get() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.load()
	if err != nil && !c.broken {
		c.log.Error("sbr: the new TLS certificate cannot be used, serving the old one", "error", err)
	}
	c.broken = err != nil
	return new(c.pair)
}
