package web

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificate is read again when its files change, so that a renewal needs no restart. It stays the last good one if they do not fit.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex
	looked  time.Time
	version [2]os.FileInfo
	pair    *tls.Certificate
}

// lookEvery bounds how often the files are looked at.
const lookEvery = time.Second

func (c *certificate) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.get(), nil }}
}

// load reads the files.
func (c *certificate) load() error {
	version, err := c.stat()
	if err != nil {
		return fmt.Errorf("http tls: %w: correct http.tls-cert-file and http.tls-key-file", err)
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("http tls: %s and %s: %w: give a PEM certificate and the key that belongs to it", c.certFile, c.keyFile, err)
	}
	c.version, c.pair, c.looked = version, &pair, time.Now()
	return nil
}

func (c *certificate) stat() (v [2]os.FileInfo, err error) {
	for i, name := range []string{c.certFile, c.keyFile} {
		if v[i], err = os.Stat(name); err != nil {
			return v, err
		}
	}
	return v, nil
}

func (c *certificate) get() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < lookEvery {
		return c.pair
	}
	c.looked = time.Now()
	now, err := c.stat()
	if err == nil && same(now[0], c.version[0]) && same(now[1], c.version[1]) {
		return c.pair
	}
	if err == nil {
		err = c.load()
	}
	if err != nil {
		c.log.Error("sbr: the new TLS certificate cannot be used, serving the old one", "error", err)
		return c.pair
	}
	c.log.Info("sbr: the TLS certificate was renewed", "file", c.certFile)
	return c.pair
}

func same(a, b os.FileInfo) bool {
	return a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && os.SameFile(a, b)
}
