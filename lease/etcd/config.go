package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/serf-sbr/serf-sbr/internal/secret"
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
		return nil, errors.New("etcd: lease.etcd.endpoints is empty: name the members of the etcd cluster")
	}
	var password string
	var err error
	if c.Username != "" {
		if password, err = secret.Of("lease.etcd.password", "", c.PasswordFile, PasswordVariable); err != nil {
			return nil, fmt.Errorf("etcd: the password of lease.etcd.username: %w", err)
		}
	}
	encrypted, err := c.tls()
	if err != nil {
		return nil, fmt.Errorf("etcd: lease.etcd.tls: %w", err)
	}
	return clientv3.New(clientv3.Config{
		Endpoints: c.Endpoints, Username: c.Username, Password: password, TLS: encrypted, DialTimeout: timeout,
		DialKeepAliveTime: keepAlive, DialKeepAliveTimeout: keepAlive, Logger: zap.NewNop(), // its errors are returned
	})
}

// tls is nil where nothing asks for it.
func (c *section) tls() (*tls.Config, error) {
	secure := slices.ContainsFunc(c.Endpoints, func(e string) bool { return strings.HasPrefix(e, "https://") })
	if !secure && c.TLS == (section{}.TLS) {
		return nil, nil
	}
	t, err := transport.TLSInfo{TrustedCAFile: c.TLS.CA, CertFile: c.TLS.Cert, KeyFile: c.TLS.Key}.ClientConfig()
	if err == nil && c.TLS.CA != "" && t.RootCAs.Equal(x509.NewCertPool()) {
		err = fmt.Errorf("ca: %s: no certificate in PEM is in it", c.TLS.CA)
	}
	return t, err
}

// Factory is the implementation for lease.Register, configured by endpoints, prefix, username, password-file
// and tls. The key is the prefix and the lease's name. Its stores are *Store: close them.
func Factory(_ context.Context, spec lease.Spec) (lease.Store, error) {
	var set section
	if err := spec.Configure(&set); err != nil {
		return nil, err
	}
	client, err := set.client(spec.Settings.OperationTimeout)
	if err != nil {
		return nil, err
	}
	s, err := New(client, cmp.Or(set.Prefix, defaultPrefix)+spec.Name)
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
