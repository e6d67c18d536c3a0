package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Key is the name of this implementation in a configuration (lease-implementation). Importing the package
// makes it known to lease.Open.
const Key = "etcd"

func init() { lease.Register(Key, Factory) }

const (
	// defaultPrefix stands before the name of the lease where the configuration names no other.
	defaultPrefix = "/serf-sbr/"
	// PasswordVariable is the environment variable with the password where the configuration has a username
	// and no password-file.
	PasswordVariable = "SBR_ETCD_PASSWORD" // #nosec G101 -- a name
	// keepAlive is after how long a silent connection is asked whether it still works, and how long that may
	// take.
	keepAlive = 5 * time.Second
)

// section is what a configuration file may say of this implementation.
type section struct {
	Endpoints    []string `json:"endpoints"     yaml:"endpoints"`
	Prefix       string   `json:"prefix"        yaml:"prefix"`
	Username     string   `json:"username"      yaml:"username"`
	PasswordFile string   `json:"password-file" yaml:"password-file"`
	TLS          struct {
		CA   string `json:"ca"   yaml:"ca"`
		Cert string `json:"cert" yaml:"cert"`
		Key  string `json:"key"  yaml:"key"`
	} `json:"tls" yaml:"tls"`
}

// client connects when it is first used.
func (c *section) client(timeout time.Duration) (*clientv3.Client, error) {
	if len(c.Endpoints) == 0 {
		return nil, errors.New("lease.etcd.endpoints is empty: name the members of the etcd cluster")
	}
	password, err := c.password()
	if err != nil {
		return nil, err
	}
	encrypted, err := c.tls()
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{
		Endpoints: c.Endpoints, Username: c.Username, Password: password, TLS: encrypted, DialTimeout: timeout,
		DialKeepAliveTime: keepAlive, DialKeepAliveTimeout: keepAlive, Logger: zap.NewNop(), // its errors are returned
	})
}

// password is from a file or the environment, never on a command line.
func (c *section) password() (string, error) {
	if c.PasswordFile == "" {
		if c.Username == "" {
			return "", nil
		}
		if p := os.Getenv(PasswordVariable); p != "" {
			return p, nil
		}
		return "", fmt.Errorf("lease.etcd.username without a password: set lease.etcd.password-file or $%s", PasswordVariable)
	}
	text, err := os.ReadFile(c.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("lease.etcd.password-file: %w", err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// tls is nil where nothing asks for it.
func (c *section) tls() (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	secure := false
	for _, e := range c.Endpoints {
		secure = secure || strings.HasPrefix(e, "https://")
	}
	if c.TLS.CA != "" {
		text, err := os.ReadFile(c.TLS.CA)
		if err != nil {
			return nil, fmt.Errorf("lease.etcd.tls.ca: %w", err)
		}
		if t.RootCAs = x509.NewCertPool(); !t.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("lease.etcd.tls.ca: %s: no certificate in PEM is in it", c.TLS.CA)
		}
		secure = true
	}
	if c.TLS.Cert != "" || c.TLS.Key != "" {
		own, err := tls.LoadX509KeyPair(c.TLS.Cert, c.TLS.Key)
		if err != nil {
			return nil, fmt.Errorf("lease.etcd.tls.cert and key: %w", err)
		}
		t.Certificates, secure = []tls.Certificate{own}, true
	}
	if !secure {
		return nil, nil
	}
	return t, nil
}

// Factory is the implementation for lease.Register, configured by endpoints, prefix, username, password-file
// and tls. The key is the prefix and the lease's name, "<system>-sbr" if that is empty. Its stores are *Store:
// close them.
func Factory(_ context.Context, spec lease.Spec) (lease.Store, error) {
	var set section
	if err := spec.Configure(&set); err != nil {
		return nil, err
	}
	client, err := set.client(cmp.Or(spec.Settings.OperationTimeout, lease.DefaultSettings().OperationTimeout))
	if err != nil {
		return nil, err
	}
	s, err := New(client, cmp.Or(set.Prefix, defaultPrefix)+cmp.Or(spec.Name, spec.System+"-sbr"))
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	s.owned = true
	return s, nil
}

// Close closes the client if Factory made it.
func (s *Store) Close() error {
	if !s.owned {
		return nil
	}
	return s.client.Close()
}
